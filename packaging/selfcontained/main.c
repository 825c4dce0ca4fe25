/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of seawall-x86_64: CPython, whose standard library and Seawall lie in a zip archive
 * behind the program itself.  Called as `python -I -S ...` it is that Python, which is how Seawall
 * starts its own processes; called otherwise it is `python -I -S <itself> ...`, which runs the
 * archive's __main__.  It never looks for another file of Python's: no environment variable, no
 * pyvenv.cfg, no folder beside it.
 */

#include <Python.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is mapped; where that has no name (a copy in memory, host/gpu_inside/fresh.py) or /proc is
 * missing, what it was called by. */
static const char *own_path(const char *called, char *buffer, size_t size)
{
    struct stat found;
    ssize_t length = readlink("/proc/self/exe", buffer, size - 1);

    if (length > 0) {
        buffer[length] = '\0';
        if (stat(buffer, &found) == 0 && S_ISREG(found.st_mode))
            return buffer;
    }
    return realpath(called, buffer) ? buffer : called;
}

static PyStatus configure(PyConfig *config, const char *path, int count, char **words)
{
    char library[PATH_MAX + 8];
    wchar_t *folder;
    PyStatus status;

    config->parse_argv = 1;
    config->pathconfig_warnings = 0;
    config->module_search_paths_set = 1;
    status = PyConfig_SetBytesArgv(config, count, words);
    if (PyStatus_Exception(status))
        return status;
    status = PyConfig_SetBytesString(config, &config->executable, path);
    if (PyStatus_Exception(status))
        return status;
    status = PyConfig_SetBytesString(config, &config->base_executable, path);
    if (PyStatus_Exception(status))
        return status;
    status = PyConfig_SetBytesString(config, &config->home, path);
    if (PyStatus_Exception(status))
        return status;
    snprintf(library, sizeof library, "%s/lib", path);
    folder = Py_DecodeLocale(library, NULL);
    if (folder == NULL)
        return PyStatus_NoMemory();
    status = PyWideStringList_Append(&config->module_search_paths, folder);
    PyMem_RawFree(folder);
    return status;
}

int main(int argc, char **argv)
{
    static char buffer[PATH_MAX + 1];
    int is_python = argc > 2 && !strcmp(argv[1], "-I") && !strcmp(argv[2], "-S");
    int more = is_python ? 0 : 3;
    const char *path = own_path(argc > 0 ? argv[0] : "", buffer, sizeof buffer);
    char **words = calloc((size_t)argc + (size_t)more + 1, sizeof *words);
    PyPreConfig before;
    PyConfig config;
    PyStatus status;

    if (words == NULL)
        return 70;
    words[0] = (char *)path;
    if (more) {
        words[1] = "-I";
        words[2] = "-S";
        words[3] = (char *)path;
    }
    for (int i = 1; i < argc; i++)
        words[i + more] = argv[i];
    PyPreConfig_InitPythonConfig(&before);
    status = Py_PreInitializeFromBytesArgs(&before, argc + more, words);
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status);
    PyConfig_InitPythonConfig(&config);
    status = configure(&config, path, argc + more, words);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status);
    return Py_RunMain();
}
