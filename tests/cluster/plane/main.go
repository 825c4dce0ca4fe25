// SPDX-License-Identifier: Apache-2.0

// A control plane in one binary: the first argument names the part, the rest are its own flags.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: plane etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kwok [FLAG...]")
	}
	// Each part reads its own name where upstream's main would: argument 0.
	os.Args = os.Args[1:]
	var command *cobra.Command
	switch os.Args[0] {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kwok":
		command = kwokCommand()
	default:
		fail("plane: no such part: " + os.Args[0])
	}
	os.Exit(cli.Run(command))
}

func fail(words string) {
	fmt.Fprintln(os.Stderr, words)
	os.Exit(2)
}
