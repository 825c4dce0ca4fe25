/* A stand-in for libcuda.so.1 without a GPU: it really takes the memory, and writes down how it
 * was called ($FAKE_CUDA_LOG).  $FAKE_CUDA: "none" no device, "hang", "crash", "old" driver's
 * error, "oom N" fails after N bytes, "unmanaged" cannot do managed memory.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long long taken;

static void note(const char *format, ...)
{
	const char *path = getenv("FAKE_CUDA_LOG");
	FILE *file = path ? fopen(path, "a") : NULL;
	va_list words;

	if (!file)
		return;
	va_start(words, format);
	vfprintf(file, format, words);
	va_end(words);
	fputc('\n', file);
	fclose(file);
}

static int is(const char *word)
{
	const char *how = getenv("FAKE_CUDA");

	return how && !strncmp(how, word, strlen(word));
}

int cuInit(unsigned int flags)
{
	note("cuInit %u", flags);
	if (is("hang"))
		sleep(600);
	if (is("crash"))
		abort();
	return is("old") ? 803 : 0;
}

int cuGetErrorName(int error, const char **words)
{
	*words = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" :
		 error == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : NULL;
	return *words ? 0 : 1;
}

int cuDriverGetVersion(int *version)
{
	*version = 12080;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = is("none") ? 0 : 1;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = 7;
	note("cuDeviceGet %d", ordinal);
	return 0;
}

int cuDeviceGetName(char *name, int length, int device)
{
	snprintf(name, length, "Stand-in %d", device);
	return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	note("cuDeviceGetAttribute %d %d", attribute, device);
	*value = !is("unmanaged");
	return 0;
}

int cuCtxCreate_v2(void **context, unsigned int flags, int device)
{
	note("cuCtxCreate_v2 %u %d", flags, device);
	*context = &taken;
	return 0;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	*free_bytes = (size_t)6 << 30;
	*total = (size_t)8 << 30;
	return 0;
}

static int take(void **pointer, size_t size)
{
	const char *how = getenv("FAKE_CUDA");
	void *area;

	if (is("oom ") && taken + size > strtoull(how + 4, NULL, 10))
		return 2;
	area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return 2;
	taken += size;
	*pointer = area;
	return 0;
}

int cuMemHostAlloc(void **pointer, size_t size, unsigned int flags)
{
	int error = take(pointer, size);

	note("cuMemHostAlloc %zu %u", size, flags);
	if (!error)
		memset(*pointer, 1, size);
	return error;
}

int cuMemAllocManaged(unsigned long long *pointer, size_t size, unsigned int flags)
{
	void *area = NULL;
	int error = take(&area, size);

	note("cuMemAllocManaged %zu %u", size, flags);
	*pointer = (unsigned long long)area;
	return error;
}
