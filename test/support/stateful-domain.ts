import { GUEST_IMAGE } from '#api/names.ts';

/** The memory and firmware of a built-in guest that boots with OVMF and has persistent EFI variables. */
export const STATEFUL_DOMAIN = {
  memory: { guest: '256Mi' },
  firmware: {
    bootloader: { efi: { secureBoot: false, persistent: true } },
    kernelBoot: { kernelArgs: 'console=ttyS0 quiet no_timer_check', container: { image: GUEST_IMAGE } },
  },
};
