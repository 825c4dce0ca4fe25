# SPDX-License-Identifier: Apache-2.0
"""The GPU driver asked as a container may ask it."""
