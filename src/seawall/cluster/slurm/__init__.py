# SPDX-License-Identifier: Apache-2.0
"""The judge beside slurmctld: nodes and jobs by Slurm's own commands, holds as levers."""
