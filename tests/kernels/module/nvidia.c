// SPDX-License-Identifier: GPL-2.0
/* The same driver under names that are known. */
#define AS_NVIDIA
#include "seawall_pages.c"
