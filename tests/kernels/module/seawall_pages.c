// SPDX-License-Identifier: GPL-2.0
/*
 * A driver that takes pages as graphics drivers do: by alloc_pages, charged to no cgroup.
 *
 * open the device, SW_TAKE with how much, at which order, and how; closing gives it back.
 * SW_KEEP holds it, SW_FORGET never gives it back (until the module goes), SW_CHURN holds it
 * and meanwhile takes and frees twenty times as much.  mmap shows the pages to the process.
 *
 * Built twice: seawall_pages.ko is a driver that nobody knows; nvidia.ko goes through functions
 * that have the names and the arguments of the NVIDIA driver's (545 and later), so that what
 * watches those can be tested without a GPU.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#define SW_KEEP 0
#define SW_FORGET 1
#define SW_CHURN 2
#define CHURN_TIMES 20
#define CHURN_SLICE_PAGES 1024
#define SW_PAGES_MOST (1UL << 20)

struct sw_request {
	__u64 bytes;
	__u32 order;
	__u32 mode;
};
#define SW_TAKE _IOW('S', 1, struct sw_request)

/* num_pages at byte 32, as in the drivers whose usage count has 64 bits. */
struct sw_alloc {
	struct sw_alloc *next;
	void *dev;
	atomic64_t usage;
	u8 flags[4];
	u32 cache_type;
	u32 num_pages;
	u32 order;
	struct page **pages;
	struct list_head link;
};

struct sw_open {
	struct mutex lock;
	struct list_head taken;
};

static LIST_HEAD(forgotten);
static DEFINE_MUTEX(forgotten_lock);

static void free_all(struct sw_alloc *at)
{
	u32 step = 1u << at->order, i;

	for (i = 0; i < at->num_pages; i += step)
		if (at->pages[i])
			__free_pages(at->pages[i], at->order);
}

static int take_all(struct sw_alloc *at)
{
	gfp_t flags = GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL | __GFP_ZERO;
	u32 step = 1u << at->order, i, j;

	if (at->order)
		flags |= __GFP_COMP;
	for (i = 0; i < at->num_pages; i += step) {
		struct page *page = fatal_signal_pending(current) ? NULL :
								    alloc_pages(flags, at->order);

		if (!page) {
			free_all(at);
			return -ENOMEM;
		}
		for (j = 0; j < step; j++)
			at->pages[i + j] = page + j;
		cond_resched();
	}
	return 0;
}

#ifdef AS_NVIDIA
/* Their names are looked for in kallsyms: global, and never inlined. */
int nv_alloc_contig_pages(void *nv, struct sw_alloc *at);
int nv_alloc_system_pages(void *nv, struct sw_alloc *at);
void nv_free_contig_pages(struct sw_alloc *at);
void nv_free_system_pages(struct sw_alloc *at);
int nv_alloc_pages(void *nv, u32 page_count, u64 page_size, u8 contiguous, u32 cache_type,
		   u8 zeroed, u8 unencrypted, s32 node_id, u64 *pte_array, void **priv_data);
int nv_free_pages(void *nv, u32 page_count, u8 contiguous, u32 cache_type, void *priv_data);

noinline int nv_alloc_contig_pages(void *nv, struct sw_alloc *at)
{
	return take_all(at);
}

noinline int nv_alloc_system_pages(void *nv, struct sw_alloc *at)
{
	return take_all(at);
}

noinline void nv_free_contig_pages(struct sw_alloc *at)
{
	free_all(at);
}

noinline void nv_free_system_pages(struct sw_alloc *at)
{
	free_all(at);
}
#endif

static struct sw_alloc *new_alloc(u32 page_count, u32 order)
{
	struct sw_alloc *at = kzalloc(sizeof(*at), GFP_KERNEL);

	if (!at)
		return NULL;
	at->order = order;
	at->num_pages = ALIGN(page_count, 1u << order);
	at->pages = kvcalloc(at->num_pages, sizeof(*at->pages), GFP_KERNEL);
	if (!at->pages) {
		kfree(at);
		return NULL;
	}
	return at;
}

static void drop_alloc(struct sw_alloc *at)
{
	kvfree(at->pages);
	kfree(at);
}

#ifdef AS_NVIDIA
noinline int nv_alloc_pages(void *nv, u32 page_count, u64 page_size, u8 contiguous,
			    u32 cache_type, u8 zeroed, u8 unencrypted, s32 node_id,
			    u64 *pte_array, void **priv_data)
{
	struct sw_alloc *at = new_alloc(page_count, get_order(page_size));
	int failed;

	if (!at)
		return -ENOMEM;
	at->flags[0] = contiguous;
	failed = contiguous ? nv_alloc_contig_pages(nv, at) : nv_alloc_system_pages(nv, at);
	if (failed) {
		drop_alloc(at);
		return failed;
	}
	*priv_data = at;
	return 0;
}

noinline int nv_free_pages(void *nv, u32 page_count, u8 contiguous, u32 cache_type,
			   void *priv_data)
{
	struct sw_alloc *at = priv_data;

	if (at->flags[0])
		nv_free_contig_pages(at);
	else
		nv_free_system_pages(at);
	drop_alloc(at);
	return 0;
}

static struct sw_alloc *take(u32 page_count, u32 order)
{
	void *priv = NULL;

	if (nv_alloc_pages(NULL, page_count, PAGE_SIZE << order, 0, 0, 1, 0, NUMA_NO_NODE, NULL,
			   &priv))
		return NULL;
	return priv;
}

static void give_back(struct sw_alloc *at)
{
	nv_free_pages(NULL, at->num_pages, at->flags[0], 0, at);
}
#define DEVICE_NAME "nvidia0"
#else
static noinline struct sw_alloc *take(u32 page_count, u32 order)
{
	struct sw_alloc *at = new_alloc(page_count, order);

	if (at && take_all(at)) {
		drop_alloc(at);
		return NULL;
	}
	return at;
}

static void give_back(struct sw_alloc *at)
{
	free_all(at);
	drop_alloc(at);
}
#define DEVICE_NAME "seawall_pages"
#endif

static int churn(u32 page_count, u32 order)
{
	u64 left = (u64)page_count * CHURN_TIMES;

	while (left) {
		u32 slice = min_t(u64, left, max_t(u32, CHURN_SLICE_PAGES, 1u << order));
		struct sw_alloc *at = take(slice, order);

		if (!at)
			return fatal_signal_pending(current) ? -EINTR : -ENOMEM;
		give_back(at);
		left -= slice;
		cond_resched();
	}
	return 0;
}

static long sw_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct sw_open *open = file->private_data;
	struct sw_request request;
	struct sw_alloc *at;
	unsigned long count;

	if (command != SW_TAKE)
		return -ENOTTY;
	if (copy_from_user(&request, (void __user *)argument, sizeof(request)))
		return -EFAULT;
	count = request.bytes >> PAGE_SHIFT;
	if (!count || count > SW_PAGES_MOST || request.order > 9 || request.mode > SW_CHURN)
		return -EINVAL;
	at = take(count, request.order);
	if (!at)
		return -ENOMEM;
	if (request.mode == SW_FORGET) {
		mutex_lock(&forgotten_lock);
		list_add(&at->link, &forgotten);
		mutex_unlock(&forgotten_lock);
		return 0;
	}
	mutex_lock(&open->lock);
	list_add_tail(&at->link, &open->taken);
	mutex_unlock(&open->lock);
	return request.mode == SW_CHURN ? churn(count, request.order) : 0;
}

static int sw_open(struct inode *inode, struct file *file)
{
	struct sw_open *open = kzalloc(sizeof(*open), GFP_KERNEL);

	if (!open)
		return -ENOMEM;
	mutex_init(&open->lock);
	INIT_LIST_HEAD(&open->taken);
	file->private_data = open;
	return 0;
}

static void free_list(struct list_head *list)
{
	struct sw_alloc *at, *next;

	list_for_each_entry_safe(at, next, list, link) {
		list_del(&at->link);
		give_back(at);
	}
}

static int sw_release(struct inode *inode, struct file *file)
{
	struct sw_open *open = file->private_data;

	free_list(&open->taken);
	kfree(open);
	return 0;
}

/* The first thing taken, from its first page on. */
static int sw_mmap(struct file *file, struct vm_area_struct *area)
{
	struct sw_open *open = file->private_data;
	unsigned long address = area->vm_start;
	struct sw_alloc *at;
	u32 i;
	int failed = 0;

	mutex_lock(&open->lock);
	at = list_first_entry_or_null(&open->taken, struct sw_alloc, link);
	if (!at || vma_pages(area) > at->num_pages)
		failed = -EINVAL;
	for (i = 0; !failed && address < area->vm_end; i++, address += PAGE_SIZE)
		failed = vm_insert_page(area, address, at->pages[i]);
	mutex_unlock(&open->lock);
	return failed;
}

static const struct file_operations sw_operations = {
	.owner = THIS_MODULE,
	.open = sw_open,
	.release = sw_release,
	.unlocked_ioctl = sw_ioctl,
	.mmap = sw_mmap,
};

static struct miscdevice sw_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = DEVICE_NAME,
	.fops = &sw_operations,
	.mode = 0666,
};

static int __init sw_init(void)
{
	return misc_register(&sw_device);
}

static void __exit sw_exit(void)
{
	misc_deregister(&sw_device);
	free_list(&forgotten);
}

module_init(sw_init);
module_exit(sw_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Takes pages that nobody counts, for the tests of seawall");
