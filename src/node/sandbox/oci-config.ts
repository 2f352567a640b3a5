/**
 * Builds the description of a sandbox for runc: an OCI runtime configuration. Its processes see the host's programs
 * read-only, their own files at their usual paths, and nothing else. Pure.
 */
import { dirname } from 'node:path';

/** A file, directory or block device that is visible in the sandbox, at the same path as on the host. */
export interface VisibleFile {
  readonly path: string;
  readonly readonly: boolean;
  /** The place in the sandbox, if it is not the same path. */
  readonly as?: string;
  readonly isBlockDevice?: boolean;
}

export interface SandboxLimits {
  readonly memoryBytes: number;
  /** Relative to other guests; 1024 for one processor. */
  readonly cpuShares: number;
  readonly processes: number;
}

interface SandboxSpec {
  readonly hostname: string;
  readonly command: readonly string[];
  /** The working directory; it must be below a visible directory. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: { readonly uid: number; readonly gid: number };
  readonly groups: readonly number[];
  readonly files: readonly VisibleFile[];
  /** A directory of the host. What the host mounts below it later appears in the sandbox. */
  readonly pluggedDir?: string;
  /** None by default. */
  readonly capabilities?: readonly string[];
  readonly devices: readonly CharacterDevice[];
  /** The path of a network namespace; absent: that of the host. */
  readonly networkNamespace?: string | undefined;
  /** Below the root of each cgroup hierarchy. */
  readonly cgroup: string;
  readonly limits: SandboxLimits;
}

/** A character device of the host, besides those that every sandbox has (null, zero, full, random, urandom, tty). */
export interface CharacterDevice {
  readonly path: string;
  readonly major: number;
  readonly minor: number;
}

/** Parts of the host's system that programs need. Missing ones are left out. */
export const SYSTEM_FILES: readonly string[] = [
  '/usr',
  '/bin',
  '/lib',
  '/lib64',
  '/etc/alternatives',
  '/etc/ld.so.cache',
  // QEMU's own network forwards requests for names to the host's servers.
  '/etc/resolv.conf',
];

const BIND = ['rbind', 'nosuid'];
/** No device may be created, and none used besides those that are visible: QEMU has no capabilities. */
const ALL_BLOCK_DEVICES = { allow: true, type: 'b', access: 'rw' };

export function buildOciConfig(spec: SandboxSpec): object {
  const { uid, gid } = spec.user;
  const { capabilities = [], pluggedDir } = spec;
  return {
    ociVersion: '1.0.2',
    hostname: spec.hostname,
    root: { path: 'rootfs', readonly: true },
    process: {
      terminal: false,
      args: spec.command,
      cwd: spec.cwd,
      env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
      user: { uid, gid, ...(spec.groups.length > 0 && { additionalGids: spec.groups }) },
      capabilities: {
        ...{ bounding: capabilities, effective: capabilities, permitted: capabilities },
        ...{ inheritable: [], ambient: [] },
      },
      noNewPrivileges: true,
      oomScoreAdj: 0,
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'nodev', 'noexec'] },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=64k'] },
      ...sortByDepth(spec.files).map(mountFile),
      ...(pluggedDir === undefined ? [] : [mountPlugged(pluggedDir)]),
    ],
    linux: {
      namespaces: [
        ...['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
        ...(spec.networkNamespace === undefined ? [] : [{ type: 'network', path: spec.networkNamespace }]),
      ],
      cgroupsPath: spec.cgroup,
      devices: spec.devices.map(({ path, major, minor }) => ({ type: 'c', path, major, minor, fileMode: 0o666 })),
      resources: {
        devices: [
          { allow: false, access: 'rwm' },
          ALL_BLOCK_DEVICES,
          ...spec.devices.map(({ major, minor }) => ({ allow: true, type: 'c', major, minor, access: 'rw' })),
        ],
        memory: { limit: spec.limits.memoryBytes },
        cpu: { shares: spec.limits.cpuShares },
        pids: { limit: spec.limits.processes },
      },
      maskedPaths: ['/proc/kcore', '/proc/keys', '/proc/timer_list', '/proc/sched_debug', '/proc/scsi', '/proc/acpi'],
      readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
    },
  };
}

function mountFile({ path, readonly, as = path, isBlockDevice = false }: VisibleFile): object {
  const options = [...BIND, ...(isBlockDevice ? [] : ['nodev']), readonly ? 'ro' : 'rw'];
  return { destination: as, type: 'bind', source: path, options };
}

/** `rslave`: mounts of the host appear in the sandbox, never the reverse. */
function mountPlugged(path: string): object {
  return { destination: path, type: 'bind', source: path, options: [...BIND, 'nodev', 'rslave'] };
}

/** A file inside a visible directory must be mounted after it. */
function sortByDepth(files: readonly VisibleFile[]): VisibleFile[] {
  const depth = ({ path, as = path }: VisibleFile) => (as === '/' ? 0 : dirname(as).split('/').length);
  return files.toSorted((a, b) => depth(a) - depth(b));
}
