/** Flag tables of the `selfsame` program. Every flag can also be set by its variable. Pure. */
import { AUDIT_FLAGS } from '#cli/audit/audit-query.ts';
import { AUDIT_LEVELS, DEFAULT_AUDIT } from '#engine/audit/audit-options.ts';
import { choiceFlag, requiredFlag, switchFlag, type FlagValues } from '#lib/command-line/flag.ts';
import {
  addressFlag,
  dnsNameFlag,
  durationFlag,
  guestSubnetsFlag,
  lifetimeFlag,
  logLevelFlag,
  nodeNameFlag,
  pathFlag,
  pathInProgram,
  portFlag,
  rangeFlag,
  serviceSubnetsFlag,
  withFlagVariables,
} from './flag-kinds.ts';

/** The limit for one machine; use a cluster for more. */
const MAX_NODES = 100;
const MEBIBYTE = 1024 * 1024;
const MAX_AUDIT_MIB = 16 * 1024;
const MAX_AUDIT_FILES = 1000;

/** Flags that choose how guests run. */
const guestFlags = {
  hypervisor: choiceFlag(
    { name: 'hypervisor', value: 'NAME', help: 'qemu runs real guests, fake simulates thousands of them' },
    ['qemu', 'fake'],
    'qemu',
  ),
  accel: choiceFlag(
    { name: 'accel', value: 'NAME', help: 'auto uses kvm if available, else tcg (software emulation)' },
    ['auto', 'kvm', 'tcg'],
    'auto',
  ),
};

const GUEST_SUBNETS =
  'subnets of the network of guests, one of IPv4 and one of IPv6, for example 10.50.0.0/16,fd00:50::/64; none for no such network';

const dataDirFlag = (help: string) => pathInProgram({ name: 'data-dir', value: 'DIR', help }, '.selfsame');
const listenHost = addressFlag({ name: 'host', help: 'IP address (or localhost) to listen on' }, '127.0.0.1', {
  allowsLocalhost: true,
});
const listenPort = portFlag({ name: 'port', help: 'TCP port to listen on; 0 picks a free port' }, 6443);

export const engineFlags = withFlagVariables({
  dataDir: dataDirFlag('directory of all state; created with mode 0700 if missing'),
  host: listenHost,
  port: listenPort,
  tokenAuthFile: pathFlag(
    {
      name: 'token-auth-file',
      value: 'FILE',
      help: 'file with bearer tokens, one token,user,uid,"group1,group2" per line',
      defaultText: 'none',
    },
    undefined,
  ),
  audit: choiceFlag(
    {
      name: 'audit',
      value: 'WHAT',
      help: 'requests to log: writes (without Leases and Events of the system), all-writes or off',
    },
    AUDIT_LEVELS,
    DEFAULT_AUDIT.level,
  ),
  auditLogMaxSize: rangeFlag(
    {
      name: 'audit-log-maxsize',
      value: 'MIB',
      help: 'maximum size of an audit log file',
      fallback: DEFAULT_AUDIT.maxBytes / MEBIBYTE,
    },
    1,
    MAX_AUDIT_MIB,
  ),
  auditLogMaxBackup: rangeFlag(
    {
      name: 'audit-log-maxbackup',
      value: 'COUNT',
      help: 'number of rotated audit log files to keep',
      fallback: DEFAULT_AUDIT.maxRotated,
    },
    1,
    MAX_AUDIT_FILES,
  ),
  eventTtl: durationFlag({ name: 'event-ttl', help: 'time to keep an Event after its last write' }, '1h'),
  serviceSubnets: serviceSubnetsFlag({ name: 'service-subnets', help: 'subnets of the addresses of Services' }),
  loadBalancer: switchFlag({
    name: 'load-balancer',
    help: 'give Services of type LoadBalancer the addresses of the nodes',
  }),
  logLevel: logLevelFlag('warn'),
});
export type EngineCommandOptions = FlagValues<typeof engineFlags>;

export const upFlags = withFlagVariables({
  ...engineFlags,
  nodes: rangeFlag(
    { name: 'nodes', value: 'COUNT', help: 'number of nodes to run on this machine', fallback: 2 },
    0,
    MAX_NODES,
  ),
  guestSubnets: guestSubnetsFlag(
    {
      name: 'guest-subnets',
      help: `${GUEST_SUBNETS}; auto for free ones, or none where guests have no network namespaces (simulated guests, without root). Used if no GuestNetwork exists`,
    },
    ['auto', 'none'],
  ),
  ...guestFlags,
});
export type UpOptions = FlagValues<typeof upFlags>;

const kubeconfigFlag = (help: string, defaultText: string) =>
  pathFlag({ name: 'kubeconfig', value: 'FILE', help, defaultText }, undefined);
const nodeName = nodeNameFlag({ name: 'name', help: 'the name of the node' }, 'node-1');

export const nodeFlags = withFlagVariables({
  name: nodeName,
  dataDir: pathInProgram(
    {
      name: 'data-dir',
      value: 'DIR',
      help: 'directory of the guests and local volumes of the node, with its kubeconfig and pki/',
    },
    '.selfsame/nodes/node-1',
  ),
  sharedDir: pathInProgram(
    { name: 'shared-dir', value: 'DIR', help: 'directory of the volumes that every node can access' },
    '.selfsame/shared',
  ),
  kubeconfig: kubeconfigFlag(
    'kubeconfig of a node of an existing cluster (selfsame join --as node)',
    'the kubeconfig in the data directory',
  ),
  nodeIp: addressFlag(
    {
      name: 'node-ip',
      help: 'with --kubeconfig: IP address at which the agent is reached, published in the Node',
      defaultText: '--address, or the first address of this machine',
    },
    undefined,
  ),
  hostname: dnsNameFlag({
    name: 'hostname',
    help: 'with --kubeconfig: DNS name of the agent, published in the Node; API servers try it before the address',
    defaultText: 'none',
  }),
  address: addressFlag(
    {
      name: 'address',
      help: 'with --kubeconfig: IP address that the agent listens on; 0.0.0.0 for all addresses',
      defaultText: 'the value of --node-ip',
    },
    undefined,
  ),
  port: portFlag({ name: 'port', help: 'with --kubeconfig: TCP port of the agent; 0 picks a free port' }, 0),
  ...guestFlags,
  logLevel: logLevelFlag('warn'),
});
export type NodeOptions = FlagValues<typeof nodeFlags>;

const clusterKubeconfig = kubeconfigFlag('kubeconfig of the cluster', 'none');

export const installFlags = withFlagVariables({
  kubeconfig: clusterKubeconfig,
  apply: switchFlag({ name: 'apply', help: 'apply everything instead of printing it' }),
  dryRun: switchFlag({
    name: 'dry-run',
    help: 'with --apply: let the API server validate everything without changing it',
  }),
  guestSubnets: guestSubnetsFlag({ name: 'guest-subnets', help: `${GUEST_SUBNETS}. Used if no GuestNetwork exists` }, [
    'none',
  ]),
});
export type InstallOptions = FlagValues<typeof installFlags>;

export const uninstallFlags = withFlagVariables({ kubeconfig: clusterKubeconfig });
export type UninstallOptions = FlagValues<typeof uninstallFlags>;

export const joinFlags = withFlagVariables({
  kubeconfig: clusterKubeconfig,
  as: choiceFlag(
    { name: 'as', value: 'ROLE', help: 'what joins: controllers or node' },
    ['controllers', 'node'],
    'controllers',
  ),
  name: nodeName,
  out: pathFlag({ name: 'out', value: 'FILE', help: 'the kubeconfig to write' }, 'selfsame.kubeconfig'),
  engineDataDir: pathFlag(
    {
      name: 'engine-data-dir',
      value: 'DIR',
      help: 'for a node of selfsame engine: the data directory of that engine',
      defaultText: 'the cluster signs the certificate',
    },
    undefined,
  ),
});
export type JoinOptions = FlagValues<typeof joinFlags>;

export const controllersFlags = withFlagVariables({
  kubeconfig: kubeconfigFlag('kubeconfig of the cluster', 'the in-cluster configuration'),
  listenAddress: addressFlag(
    { name: 'listen-address', help: 'IP address to listen on for requests of the API server' },
    '0.0.0.0',
  ),
  webhookPort: portFlag(
    { name: 'webhook-port', help: 'TCP port of the webhook and the aggregated API; 0 picks a free port' },
    9443,
  ),
  advertiseAddress: addressFlag(
    {
      name: 'advertise-address',
      help: 'IP address at which the API server reaches this process',
      defaultText: 'the first address of this machine',
    },
    undefined,
  ),
  certificateLifetime: lifetimeFlag(
    {
      name: 'certificate-lifetime',
      help: 'lifetime of the certificates of services and agents; renewed at half of it',
    },
    30,
  ),
  caLifetime: lifetimeFlag(
    {
      name: 'ca-lifetime',
      help: 'lifetime of the certificate authorities; at least four times --certificate-lifetime',
    },
    730,
  ),
  logLevel: logLevelFlag('warn'),
});
export type ControllersOptions = FlagValues<typeof controllersFlags>;

/** The data directory for commands that use an existing plane. */
const planeDir = dataDirFlag('the data directory of the plane');

export const hostFlags = withFlagVariables({
  node: nodeNameFlag(
    { name: 'node', help: 'the node to call, if there are several', defaultText: 'the only node' },
    undefined,
  ),
  dataDir: planeDir,
});
export type HostOptions = FlagValues<typeof hostFlags>;

/** The filters have no variables: they belong to one call. */
export const auditReaderFlags = { ...withFlagVariables({ dataDir: planeDir }), ...AUDIT_FLAGS };
export type AuditReaderOptions = FlagValues<typeof auditReaderFlags>;

const archiveFlag = (name: string, help: string) => requiredFlag({ name, help, completes: 'file' }, 'FILE');

export const backupFlags = withFlagVariables({
  dataDir: planeDir,
  to: archiveFlag('to', 'the archive to write; it contains keys and all Secrets'),
});
export type BackupCommandOptions = FlagValues<typeof backupFlags>;

export const restoreBackupFlags = withFlagVariables({
  dataDir: planeDir,
  from: archiveFlag('from', 'an archive written by selfsame backup'),
});
export type RestoreBackupOptions = FlagValues<typeof restoreBackupFlags>;

export const doctorFlags = withFlagVariables({
  dataDir: dataDirFlag('the data directory of the plane, existing or planned'),
  host: listenHost,
  port: listenPort,
  output: choiceFlag(
    { name: 'output', short: 'o', value: 'FORMAT', help: 'text for people, json for programs' },
    ['text', 'json'],
    'text',
  ),
  bundle: pathFlag(
    {
      name: 'bundle',
      value: 'FILE',
      help: 'also write a support bundle (tar.gz) with findings, logs and objects, without secrets',
      defaultText: 'none',
    },
    undefined,
  ),
});
export type DoctorOptions = FlagValues<typeof doctorFlags>;

export const tourFlags = withFlagVariables({
  kubeconfig: kubeconfigFlag(
    'kubeconfig of a running plane to use',
    'the plane of the data directory if it runs, else a temporary plane',
  ),
  dataDir: planeDir,
  clear: switchFlag({ name: 'clear', help: 'only remove what killed tours left behind' }),
});
export type TourCommandOptions = FlagValues<typeof tourFlags>;

// Users follow the Job by this log.
export const transitionFlags = withFlagVariables({ logLevel: logLevelFlag('info') });
export type TransitionProgramOptions = FlagValues<typeof transitionFlags>;
