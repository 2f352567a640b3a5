/** Checks of the hardware and files that guests use: KVM, firmware, loop devices. */
import type { Finding } from '#doctor/finding.ts';
import type { ExaminedMachine } from '#doctor/machine.ts';

const EMULATED = 'guests are emulated (TCG), which is many times slower';

export async function examineKvm(machine: ExaminedMachine): Promise<Finding> {
  const what = 'KVM';
  const hasFlag = /^flags\s*:.*\b(?:vmx|svm)\b/m.test(await machine.text('/proc/cpuinfo'));
  if (!hasFlag) {
    const fix = 'enable virtualization in the firmware of the machine, or nested virtualization on its host';
    return { what, state: 'limited', message: `the processor does not offer virtualization: ${EMULATED}`, fix };
  }
  const device = await machine.file('/dev/kvm');
  if (device === undefined) {
    return {
      what,
      state: 'limited',
      message: `/dev/kvm does not exist: ${EMULATED}`,
      fix: 'modprobe kvm_intel || modprobe kvm_amd',
    };
  }
  if (!device.isWritable) {
    return {
      what,
      state: 'limited',
      message: `no permission to open /dev/kvm: ${EMULATED}`,
      fix: 'run as root, or: adduser $USER kvm',
    };
  }
  return { what, state: 'works', message: '/dev/kvm' };
}

const OVMF = '/usr/share/OVMF';
const FIRMWARE = ['OVMF_CODE_4M.fd', 'OVMF_VARS_4M.fd', 'OVMF_CODE_4M.secboot.fd', 'OVMF_VARS_4M.ms.fd'];

export async function examineFirmware(machine: ExaminedMachine): Promise<Finding> {
  const what = 'UEFI firmware';
  const found = await Promise.all(FIRMWARE.map((name) => machine.file(`${OVMF}/${name}`)));
  const absent = FIRMWARE.filter((_, index) => found[index] === undefined);
  if (absent.length === 0) return { what, state: 'works', message: `OVMF in ${OVMF}, with and without secure boot` };
  const message = `${absent.join(', ')} not in ${OVMF}: VMs with EFI cannot start`;
  return { what, state: 'limited', message, fix: 'apt-get install -y --no-install-recommends ovmf' };
}

/** Without root, guests have no users of their own and no namespaces. */
export function examineSandboxes({ isRoot }: Pick<ExaminedMachine, 'isRoot'>): Finding {
  const what = 'sandboxes';
  if (isRoot) return { what, state: 'works', message: 'each guest has its own user, files and limits' };
  const message = 'requires root: guests run as this user, and a guest that breaks out of QEMU can reach all others';
  return { what, state: 'limited', message, fix: 'run as root' };
}

export async function examineLoopDevices(machine: ExaminedMachine): Promise<Finding> {
  const what = 'loop devices';
  const without = 'the storage classes local-block and shared-block cannot be used; local and shared can';
  if (!machine.isRoot) return { what, state: 'limited', message: `requires root: ${without}`, fix: 'run as root' };
  const control = await machine.file('/dev/loop-control');
  if (control === undefined) {
    return { what, state: 'limited', message: `/dev/loop-control does not exist: ${without}`, fix: 'modprobe loop' };
  }
  if (!control.isWritable) {
    const fix = 'in a container: give it /dev/loop-control and CAP_SYS_ADMIN';
    return { what, state: 'limited', message: `no permission to open /dev/loop-control: ${without}`, fix };
  }
  return { what, state: 'works', message: '/dev/loop-control' };
}
