/** Flag tables of the `selfsame` program: names, help and parsers. Pure. */
import { isIP } from 'node:net';
import { join } from 'node:path';
import { auditFlags } from '#engine/audit/audit-options.ts';
import type { LogLevel } from '#lib/log.ts';
import { nodeClusterFlags } from './cluster-flags.ts';
import { parsePath, parsePortFlag, flag, logLevel, nodeName, parseWord, parseBoolean } from './flag.ts';

const PROJECT_ROOT = join(import.meta.dirname, '../..');
/** The limit for one machine; use a cluster for more. */
const MAX_NODES = 100;

const HYPERVISORS = ['qemu', 'fake'] as const;
const ACCELERATORS = ['auto', 'kvm', 'tcg'] as const;

/** Flags that choose how guests run. */
const guestFlags = {
  hypervisor: flag<(typeof HYPERVISORS)[number]>({
    name: 'hypervisor',
    value: 'NAME',
    help: 'qemu runs real guests, fake simulates thousands of them',
    fallback: 'qemu',
    completes: HYPERVISORS,
    parse: parseWord(HYPERVISORS),
  }),
  accel: flag<(typeof ACCELERATORS)[number]>({
    name: 'accel',
    value: 'NAME',
    help: 'auto uses kvm if available, else tcg (software emulation)',
    fallback: 'auto',
    completes: ACCELERATORS,
    parse: parseWord(ACCELERATORS),
  }),
};

export const engineFlags = {
  dataDir: flag<string>({
    name: 'data-dir',
    value: 'DIR',
    help: 'directory of all state; created with mode 0700 if missing',
    fallback: join(PROJECT_ROOT, '.selfsame'),
    fallbackText: '.selfsame in the folder of the program',
    completes: 'file',
    parse: parsePath,
  }),
  host: flag<string>({
    name: 'host',
    value: 'ADDRESS',
    help: 'IP address (or localhost) to listen on',
    fallback: '127.0.0.1',
    parse: (text) =>
      isIP(text) !== 0 || text === 'localhost' ? { ok: text } : { mustBe: 'an IP address or localhost' },
  }),
  port: flag<number>({
    name: 'port',
    value: 'PORT',
    help: 'TCP port to listen on; 0 picks a free port',
    fallback: 6443,
    parse: parsePortFlag,
  }),
  tokenAuthFile: flag<string | undefined>({
    name: 'token-auth-file',
    value: 'FILE',
    help: 'file with bearer tokens, one token,user,uid,"group1,group2" per line',
    fallback: undefined,
    fallbackText: 'none',
    completes: 'file',
    parse: parsePath,
  }),
  ...auditFlags,
  logLevel,
};

export const upFlags = {
  ...engineFlags,
  nodes: flag<number>({
    name: 'nodes',
    value: 'COUNT',
    help: 'number of nodes to run on this machine',
    fallback: 2,
    parse(text) {
      const count = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
      return count <= MAX_NODES ? { ok: count } : { mustBe: `a number from 0 to ${MAX_NODES}` };
    },
  }),
  ...guestFlags,
};

export const nodeFlags = {
  name: nodeName,
  dataDir: flag<string>({
    name: 'data-dir',
    value: 'DIR',
    help: 'directory of the guests and local volumes of the node, with its kubeconfig and pki/',
    fallback: join(PROJECT_ROOT, '.selfsame/nodes/node-1'),
    fallbackText: '.selfsame/nodes/node-1 in the folder of the program',
    completes: 'file',
    parse: parsePath,
  }),
  sharedDir: flag<string>({
    name: 'shared-dir',
    value: 'DIR',
    help: 'directory of the volumes that every node can access',
    fallback: join(PROJECT_ROOT, '.selfsame/shared'),
    fallbackText: '.selfsame/shared in the folder of the program',
    completes: 'file',
    parse: parsePath,
  }),
  ...nodeClusterFlags,
  ...guestFlags,
  logLevel,
};

/** The data directory for commands that use an existing plane. */
const planeDir = flag<string>({ ...engineFlags.dataDir, help: 'the data directory of the plane' });

export const hostFlags = {
  node: flag<string | undefined>({
    name: 'node',
    value: 'NAME',
    help: 'the node to call, if there are several',
    fallback: undefined,
    fallbackText: 'the only node',
    parse: nodeFlags.name.parse,
  }),
  dataDir: planeDir,
};

export const auditReaderFlags = { dataDir: planeDir };

export const backupFlags = {
  dataDir: planeDir,
  to: flag<string | undefined>({
    name: 'to',
    value: 'FILE',
    help: 'the archive to write; it contains keys and all Secrets',
    fallback: undefined,
    required: true,
    completes: 'file',
    parse: parsePath,
  }),
};

export const restoreBackupFlags = {
  dataDir: planeDir,
  from: flag<string | undefined>({
    name: 'from',
    value: 'FILE',
    help: 'an archive written by selfsame backup',
    fallback: undefined,
    required: true,
    completes: 'file',
    parse: parsePath,
  }),
};

const OUTPUTS = ['text', 'json'] as const;

export const doctorFlags = {
  dataDir: flag<string>({ ...engineFlags.dataDir, help: 'the data directory of the plane, existing or planned' }),
  host: engineFlags.host,
  port: engineFlags.port,
  output: flag<(typeof OUTPUTS)[number]>({
    name: 'output',
    value: 'FORMAT',
    help: 'text for people, json for programs',
    fallback: 'text',
    completes: OUTPUTS,
    parse: parseWord(OUTPUTS),
  }),
  bundle: flag<string | undefined>({
    name: 'bundle',
    value: 'FILE',
    help: 'also write a support bundle (tar.gz) with findings, logs and objects, without secrets',
    fallback: undefined,
    fallbackText: 'none',
    completes: 'file',
    parse: parsePath,
  }),
};

export const tourFlags = {
  kubeconfig: flag<string | undefined>({
    name: 'kubeconfig',
    value: 'FILE',
    help: 'kubeconfig of a running plane to use',
    fallback: undefined,
    fallbackText: 'the plane of the data directory if it runs, else a temporary plane',
    completes: 'file',
    parse: parsePath,
  }),
  dataDir: planeDir,
  clear: flag<boolean>({
    name: 'clear',
    value: '',
    bare: true,
    help: 'only remove what killed tours left behind',
    fallback: false,
    parse: parseBoolean,
  }),
};

export const transitionFlags = {
  // Users follow the Job by this log.
  logLevel: flag<LogLevel>({ ...logLevel, fallback: 'info' }),
};
