# Transition: compares a change of state with the table of its machine. Debug builds only; release builds have no code for it.

cdef extern from *:
    """
    #ifdef EF_DEBUG
    #include <assert.h>
    #define ef_check_transition(table, state, next) assert((table)[state] >> (next) & 1)
    #else
    #define ef_check_transition(table, state, next) ((void)(table))
    #endif
    """
    void ef_check_transition(const uint32_t *table, int state, int next) noexcept
