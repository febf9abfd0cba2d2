# Ways that are hardly ever gone, out of the way of the others: what leads to a traceback is no longer laid out between what a request does.
# Cython has no word for that. gcc moves all code to a section apart that cannot but end in a function of this kind; a request's way was 850
# lines of the processor's cache, which are fetched anew after each system call, and is shorter now (bench/README.md).

cdef extern from *:
    """
    #define EF_COLD __attribute__((cold))
    EF_COLD static void __Pyx_AddTraceback(const char *function, int c_line, int line, const char *file);
    EF_COLD static void __Pyx_WriteUnraisable(const char *name, int c_line, int line, const char *file, int full, int nogil);
    """
