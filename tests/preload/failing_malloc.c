/*
 * To be loaded before the C library: lets one allocation of a process fail. The file that FAILING_MALLOC names holds
 * a number of 8 bytes, which whoever tests it writes: each allocation takes 1 from it, and the one that brings it from
 * 1 to 0 gets no memory.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);


static long  *left;


__attribute__((constructor)) static void
open_countdown(void)
{
    int          fd;
    void        *map;
    const char  *file;

    file = getenv("FAILING_MALLOC");
    if (file == NULL) {
        return;
    }

    fd = open(file, O_RDWR);
    if (fd == -1) {
        _exit(2);
    }

    map = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        _exit(2);
    }

    close(fd);
    left = map;
}


static int
fails(void)
{
    if (left == NULL || __atomic_load_n(left, __ATOMIC_SEQ_CST) <= 0) {
        return 0;
    }

    if (__atomic_sub_fetch(left, 1, __ATOMIC_SEQ_CST) != 0) {
        return 0;
    }

    errno = ENOMEM;
    return 1;
}


void *
malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}


void *
calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}


void *
realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}


int
posix_memalign(void **p, size_t alignment, size_t size)
{
    if (fails()) {
        return ENOMEM;
    }

    *p = __libc_memalign(alignment, size);

    return *p == NULL ? ENOMEM : 0;
}
