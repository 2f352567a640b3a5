/** Every flag of the `selfsame` program, as values: its name, its words in the help, and how it is read. Pure. */
import { isIP } from 'node:net';
import { join } from 'node:path';
import { auditFlags } from '#engine/audit/audit-options.ts';
import type { LogLevel } from '#lib/log.ts';
import { nodeClusterFlags } from './cluster-flags.ts';
import { aPath, aPort, flag, logLevel, nodeName, wordOf, yesOrNo } from './flag.ts';

const PROJECT_ROOT = join(import.meta.dirname, '../..');
/** On one machine; more belong to a cluster. */
const MAX_NODES = 100;

const HYPERVISORS = ['qemu', 'fake'] as const;
const ACCELERATORS = ['auto', 'kvm', 'tcg'] as const;

/** How guests are run. */
const guestFlags = {
  hypervisor: flag<(typeof HYPERVISORS)[number]>({
    name: 'hypervisor',
    value: 'NAME',
    help: 'qemu runs real guests, fake simulates them by the thousands',
    fallback: 'qemu',
    completes: HYPERVISORS,
    parse: wordOf(HYPERVISORS),
  }),
  accel: flag<(typeof ACCELERATORS)[number]>({
    name: 'accel',
    value: 'NAME',
    help: 'auto takes kvm where it works, else tcg (software emulation)',
    fallback: 'auto',
    completes: ACCELERATORS,
    parse: wordOf(ACCELERATORS),
  }),
};

export const engineFlags = {
  dataDir: flag<string>({
    name: 'data-dir',
    value: 'DIR',
    help: 'where all state lives; made (mode 0700) when missing',
    fallback: join(PROJECT_ROOT, '.selfsame'),
    fallbackText: '.selfsame in the folder of the program',
    completes: 'file',
    parse: aPath,
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
    help: 'TCP port to listen on; 0 takes a free one',
    fallback: 6443,
    parse: aPort,
  }),
  tokenAuthFile: flag<string | undefined>({
    name: 'token-auth-file',
    value: 'FILE',
    help: 'bearer tokens, one token,user,uid,"group1,group2" a line',
    fallback: undefined,
    fallbackText: 'none',
    completes: 'file',
    parse: aPath,
  }),
  ...auditFlags,
  logLevel,
};

export const upFlags = {
  ...engineFlags,
  nodes: flag<number>({
    name: 'nodes',
    value: 'COUNT',
    help: 'how many nodes run VMs on this machine',
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
    help: 'where the guests and local volumes of the node live, with its kubeconfig and pki/',
    fallback: join(PROJECT_ROOT, '.selfsame/nodes/node-1'),
    fallbackText: '.selfsame/nodes/node-1 in the folder of the program',
    completes: 'file',
    parse: aPath,
  }),
  sharedDir: flag<string>({
    name: 'shared-dir',
    value: 'DIR',
    help: 'where volumes lie that every node reaches',
    fallback: join(PROJECT_ROOT, '.selfsame/shared'),
    fallbackText: '.selfsame/shared in the folder of the program',
    completes: 'file',
    parse: aPath,
  }),
  ...nodeClusterFlags,
  ...guestFlags,
  logLevel,
};

/** Of commands that look for a plane, and make none. */
const planeDir = flag<string>({ ...engineFlags.dataDir, help: 'the data directory of the plane' });

export const hostFlags = {
  node: flag<string | undefined>({
    name: 'node',
    value: 'NAME',
    help: 'which node, where there are several',
    fallback: undefined,
    fallbackText: 'the only one',
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
    help: 'the archive to write; it holds keys and every Secret',
    fallback: undefined,
    required: true,
    completes: 'file',
    parse: aPath,
  }),
};

export const restoreBackupFlags = {
  dataDir: planeDir,
  from: flag<string | undefined>({
    name: 'from',
    value: 'FILE',
    help: 'an archive that selfsame backup has made',
    fallback: undefined,
    required: true,
    completes: 'file',
    parse: aPath,
  }),
};

const OUTPUTS = ['text', 'json'] as const;

export const doctorFlags = {
  dataDir: flag<string>({ ...engineFlags.dataDir, help: 'the data directory that the plane has or will have' }),
  host: engineFlags.host,
  port: engineFlags.port,
  output: flag<(typeof OUTPUTS)[number]>({
    name: 'output',
    value: 'FORMAT',
    help: 'text for people, json for programs',
    fallback: 'text',
    completes: OUTPUTS,
    parse: wordOf(OUTPUTS),
  }),
  bundle: flag<string | undefined>({
    name: 'bundle',
    value: 'FILE',
    help: 'writes a support bundle (tar.gz), too: findings, logs, objects, without secrets',
    fallback: undefined,
    fallbackText: 'none',
    completes: 'file',
    parse: aPath,
  }),
};

export const tourFlags = {
  kubeconfig: flag<string | undefined>({
    name: 'kubeconfig',
    value: 'FILE',
    help: 'a plane that runs already, and is used then',
    fallback: undefined,
    fallbackText: 'that of the data directory where it runs, else a plane of its own',
    completes: 'file',
    parse: aPath,
  }),
  dataDir: planeDir,
  clear: flag<boolean>({
    name: 'clear',
    value: '',
    bare: true,
    help: 'walk nowhere; only remove what tours that were killed have left behind',
    fallback: false,
    parse: yesOrNo,
  }),
};

export const transitionFlags = {
  // Its log is what people read to follow the Job.
  logLevel: flag<LogLevel>({ ...logLevel, fallback: 'info' }),
};
