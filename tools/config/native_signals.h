/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interrupts off and on, on a native machine of one CPU.
 *
 * User-mode Linux keeps the signals off by which its CPUs interrupt each other,
 * with a system call of the host each time: some 7700 for a MiB that is written,
 * and three fifths of a load's time. Of a CPU that is alone there are none, and a
 * real one turns its interrupts off with an instruction.
 *
 * tools/rust_writeback/vm/native.py has this file compiled into the kernel's
 * files of this name; one of them is for the host.
 */
#ifdef __UM_HOST__
#include <os.h>
#include <smp.h>

#define os_local_ipi_disable() do { if (uml_ncpus > 1) os_local_ipi_disable(); } while (0)
#define os_local_ipi_enable() do { if (uml_ncpus > 1) os_local_ipi_enable(); } while (0)
#endif
