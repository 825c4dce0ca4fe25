// SPDX-License-Identifier: Apache-2.0

// The incident's workload: memory of packet rings, which no cgroup counts.
// hog MIB MILLISECONDS: so much more, so often, for as long as it lives.
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const (
	packetRXRing = 5
	solPacket    = 263
	frame        = 2048
)

type ringRequest struct{ blockSize, blocks, frameSize, frames uint32 }

func main() {
	mib, mibErr := strconv.Atoi(os.Args[1])
	pause, pauseErr := strconv.Atoi(os.Args[2])
	if mibErr != nil || pauseErr != nil {
		fmt.Fprintln(os.Stderr, "hog MIB MILLISECONDS")
		os.Exit(2)
	}
	request := ringRequest{1 << 20, uint32(mib), frame, uint32(mib << 20 / frame)}
	for total := 0; ; time.Sleep(time.Duration(pause) * time.Millisecond) {
		ring, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0)
		if err != nil {
			fmt.Println("socket:", err)
			continue
		}
		_, _, code := syscall.Syscall6(syscall.SYS_SETSOCKOPT, uintptr(ring), solPacket, packetRXRing,
			uintptr(unsafe.Pointer(&request)), unsafe.Sizeof(request), 0)
		if code != 0 {
			fmt.Println("ring:", code)
			syscall.Close(ring)
			continue
		}
		total += mib
		fmt.Println(total, "MiB")
	}
}
