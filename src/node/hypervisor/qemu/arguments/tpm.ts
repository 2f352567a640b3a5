import { invariant } from '#lib/invariant.ts';
import type { TpmDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

/** Builds the arguments of a TPM, which is a swtpm that listens on the socket before QEMU starts. */
export function tpmArguments({ id, model }: TpmDevice, { tpmSocket }: QemuHost): string[] {
  invariant(tpmSocket !== undefined, 'a guest with a TPM has its socket');
  const chardev = `chr-${id}`;
  const tpmdev = `dev-${id}`;
  return [
    '-chardev',
    optionText('socket', { id: chardev, path: tpmSocket }),
    '-tpmdev',
    optionText('emulator', { id: tpmdev, chardev }),
    ...deviceArguments({ driver: `tpm-${model}`, id, tpmdev }),
  ];
}
