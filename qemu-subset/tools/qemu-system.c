/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qemu-system-x86_64. */
#include "guest/runstate.h"
#include "tools/system.h"

int main(int argc, char **argv)
{
    if (!system_start(argc, argv)) {
        return 1;
    }
    vm_main_loop();
    system_finish();
    return 0;
}
