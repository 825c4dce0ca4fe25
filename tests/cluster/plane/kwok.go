// SPDX-License-Identifier: Apache-2.0

//go:build !nokwok

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// kwok reads its Stages and its log's flags before its command exists.
func kwokCommand() *cobra.Command {
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		fail("kwok: " + err.Error())
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	command.SetContext(ctx)
	// Else cobra takes the core's own flag of that name, which is not a bool.
	command.Flags().Bool("version", false, "version of kwok")
	return command
}
