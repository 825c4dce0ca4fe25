// SPDX-License-Identifier: GPL-2.0
/*
 * Two probes that do nothing on each tracepoint that a trace of Seawall switches on and off.
 *
 * With two there from the start the kernel rewrites none of its instructions for a third
 * (kernel/tracepoint.c, TP_FUNC_N), which QEMU before 8.1 may translate wrongly when another
 * CPU runs them at that moment: it then runs the breakpoint that was there for a moment for ever.
 */
#include <linux/module.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#define PROBES 2

/* The last three: what a trace follows to know names (record-cmd). */
static const char *const names[] = {
	"mm_page_alloc", "mm_page_free", "task_newtask", "cgroup_attach_task",
	"sched_switch", "sched_wakeup", "sched_wakeup_new",
};
static struct tracepoint *found[ARRAY_SIZE(names)];

static void nothing(void *data)
{
}

static void look(struct tracepoint *tp, void *unused)
{
	int i = match_string(names, ARRAY_SIZE(names), tp->name);

	if (i >= 0)
		found[i] = tp;
}

static void let_go(void)
{
	unsigned long i, j;

	for (i = 0; i < ARRAY_SIZE(found); i++)
		for (j = 0; found[i] && j < PROBES; j++)
			tracepoint_probe_unregister(found[i], nothing, (char *)&found[i] + j);
	tracepoint_synchronize_unregister();
}

static int __init hold_init(void)
{
	unsigned long i, j;
	int problem = 0;

	for_each_kernel_tracepoint(look, NULL);
	for (i = 0; i < ARRAY_SIZE(found) && !problem; i++) {
		if (!found[i])
			problem = -ENOENT;
		for (j = 0; j < PROBES && !problem; j++)
			problem = tracepoint_probe_register(found[i], nothing, (char *)&found[i] + j);
	}
	if (problem)
		let_go();
	return problem;
}

static void __exit hold_exit(void)
{
	let_go();
}

module_init(hold_init);
module_exit(hold_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Keeps an emulator from running breakpoints for ever, for the tests of seawall");
