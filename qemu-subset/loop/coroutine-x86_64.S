/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Coroutine switch for x86-64, System V ABI. */

/*
 * void coroutine_arch_switch(void **save, void *load)
 *
 * The way out is a jump and not a return: the target lies on another stack, so the processor's return predictor would
 * always be wrong. "notrack" because a return site has no endbr64.
 */
    .text
    .globl  coroutine_arch_switch
    .hidden coroutine_arch_switch
    .type   coroutine_arch_switch, @function
    .p2align 5
coroutine_arch_switch:
    .cfi_startproc
    endbr64
    pushq   %rbp
    pushq   %rbx
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    popq    %rcx
    notrack jmp *%rcx
    .cfi_endproc
    .size   coroutine_arch_switch, . - coroutine_arch_switch

    .section .note.GNU-stack, "", @progbits
