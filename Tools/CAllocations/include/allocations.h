#ifndef LARDER_ALLOCATIONS_H
#define LARDER_ALLOCATIONS_H

/// Starts counting the allocations of the whole process.
void larder_allocations_begin(void);

/// Ends counting; answers how many there were, or -1 where they cannot be counted.
long larder_allocations_end(void);

/// Gives back to the system what the process has freed, and answers how many bytes it has not freed; -1 where neither
/// can be done.
long larder_allocations_trim(void);

#endif
