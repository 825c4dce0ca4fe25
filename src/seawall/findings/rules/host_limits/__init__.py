# SPDX-License-Identifier: Apache-2.0
"""Rules about limits of the whole host: tasks, inotify watches and others."""
