/** Checks of the programs that guests and volumes need, with the Debian package of each. */
import type { Finding, FindingState } from '#doctor/finding.ts';
import type { ExaminedMachine } from '#doctor/machine.ts';

interface Program {
  readonly what: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly package: string;
  /** The consequence if it is missing. */
  readonly without: string;
  readonly otherwise: Exclude<FindingState, 'works'>;
  /** Set if only a server that runs as root needs it; otherwise its absence is a limit. */
  readonly needsRoot?: true;
  /** Set if users run it, from their own PATH. */
  readonly calledBy?: 'user';
  /** The oldest tested version. */
  readonly atLeast?: string;
}

const NO_NETWORK = 'no guest with a network can start; --guest-subnets none avoids that';

export const PROGRAMS: readonly Program[] = [
  {
    what: 'QEMU',
    file: 'qemu-system-x86_64',
    args: ['--version'],
    package: 'qemu-system-x86',
    without: 'no guest can start',
    otherwise: 'missing',
    atLeast: '7.2',
  },
  {
    what: 'qemu-img',
    file: 'qemu-img',
    args: ['--version'],
    package: 'qemu-utils',
    without: 'disks cannot be created, copied or checked',
    otherwise: 'missing',
  },
  {
    what: 'swtpm',
    file: 'swtpm',
    args: ['--version'],
    package: 'swtpm',
    without: 'VMs with a TPM cannot start',
    otherwise: 'limited',
  },
  {
    what: 'runc',
    file: 'runc',
    args: ['--version'],
    package: 'runc',
    without: 'if the server runs as root, no guest can start: each has a sandbox',
    otherwise: 'missing',
    needsRoot: true,
  },
  {
    what: 'ip',
    file: 'ip',
    args: ['-V'],
    package: 'iproute2',
    without: `if the server runs as root, ${NO_NETWORK}`,
    otherwise: 'missing',
    needsRoot: true,
  },
  {
    what: 'nft',
    file: 'nft',
    args: ['--version'],
    package: 'nftables',
    without: `if the server runs as root, ${NO_NETWORK}`,
    otherwise: 'missing',
    needsRoot: true,
  },
  {
    what: 'dnsmasq',
    file: 'dnsmasq',
    args: ['--version'],
    package: 'dnsmasq-base',
    without: `if the server runs as root, ${NO_NETWORK}`,
    otherwise: 'missing',
    needsRoot: true,
  },
  {
    what: 'losetup',
    file: 'losetup',
    args: ['--version'],
    package: 'mount',
    without: 'volumes of the storage classes local-block and shared-block cannot be used',
    otherwise: 'limited',
  },
  {
    what: 'mkfs.ext4',
    file: 'mkfs.ext4',
    args: ['-V'],
    package: 'e2fsprogs',
    without: 'persistent state cannot be kept in block volumes',
    otherwise: 'limited',
  },
  {
    what: 'kubectl',
    file: 'kubectl',
    args: ['version', '--client'],
    package: 'kubernetes-client',
    without: 'the plane runs, but the commands in the documentation do not work',
    otherwise: 'limited',
    calledBy: 'user',
  },
  {
    what: 'ssh',
    file: 'ssh',
    args: ['-V'],
    package: 'openssh-client',
    without: 'virtctl ssh and virtctl scp do not work; virtctl console and port-forward do',
    otherwise: 'limited',
    calledBy: 'user',
  },
];

/** The limit for the quoted output of a failed program. */
const MAX_QUOTED = 120;

export async function examinePrograms(machine: ExaminedMachine): Promise<Finding[]> {
  return await Promise.all(PROGRAMS.map((program) => examineProgram(machine, program)));
}

async function examineProgram(machine: ExaminedMachine, program: Program): Promise<Finding> {
  const { what, file, args, without, atLeast, calledBy = 'agent' } = program;
  const otherwise = program.needsRoot === true && !machine.isRoot ? 'limited' : program.otherwise;
  const install = `apt-get install -y --no-install-recommends ${program.package}`;
  const result = await machine.run(file, args, calledBy);
  if (result === undefined)
    return { what, state: otherwise, message: `${missingText(file, calledBy)}: ${without}`, fix: install };
  if (!result.works) {
    const words = result.text.trim().split('\n')[0]?.slice(0, MAX_QUOTED) ?? '';
    return {
      what,
      state: otherwise,
      message: `${file} does not run (${words}): ${without}`,
      fix: `${install} --reinstall`,
    };
  }
  const version = /\d+(?:\.\d+)+/.exec(result.text)?.[0];
  if (version === undefined) return { what, state: 'works', message: file };
  if (atLeast !== undefined && isOlder(version, atLeast)) {
    return { what, state: 'limited', message: `${version}; tested with ${atLeast} and later`, fix: install };
  }
  return { what, state: 'works', message: version };
}

const missingText = (file: string, calledBy: 'agent' | 'user') =>
  calledBy === 'agent' ? `${file} is not in the system directories` : `${file} is not in your PATH`;

export function isOlder(version: string, other: string): boolean {
  const [a, b] = [version, other].map((text) => text.split('.').map(Number));
  for (const [at, part] of b!.entries()) if ((a![at] ?? 0) !== part) return (a![at] ?? 0) < part;
  return false;
}
