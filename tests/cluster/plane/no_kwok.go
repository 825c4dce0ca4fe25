// SPDX-License-Identifier: Apache-2.0

//go:build nokwok

package main

import "github.com/spf13/cobra"

// Of a version whose libraries no kwok compiles with: the one of another version does as well.
func kwokCommand() *cobra.Command {
	fail("kwok: not in this program")
	return nil
}
