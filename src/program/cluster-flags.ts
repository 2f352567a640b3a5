/** Flags of the commands for existing clusters: install, uninstall, join, controllers and node. */
import {
  parseDnsName,
  parseLifetime,
  parsePath,
  parsePortFlag,
  parseAddress,
  flag,
  logLevel,
  nodeName,
  parseWord,
  parseBoolean,
} from './flag.ts';

const kubeconfig = flag<string | undefined>({
  name: 'kubeconfig',
  value: 'FILE',
  help: 'kubeconfig of the cluster',
  fallback: undefined,
  fallbackText: 'none',
  completes: 'file',
  parse: parsePath,
});

export const installFlags = {
  kubeconfig,
  apply: flag<boolean>({
    name: 'apply',
    value: '',
    bare: true,
    help: 'apply everything instead of printing it',
    fallback: false,
    parse: parseBoolean,
  }),
  dryRun: flag<boolean>({
    name: 'dry-run',
    value: '',
    bare: true,
    help: 'with --apply: let the API server validate everything without changing it',
    fallback: false,
    parse: parseBoolean,
  }),
};

export const uninstallFlags = { kubeconfig };

const ROLES = ['controllers', 'node'] as const;

export const joinFlags = {
  kubeconfig,
  as: flag<(typeof ROLES)[number]>({
    name: 'as',
    value: 'ROLE',
    help: 'what joins: controllers or node',
    fallback: 'controllers',
    completes: ROLES,
    parse: parseWord(ROLES),
  }),
  name: nodeName,
  out: flag<string>({
    name: 'out',
    value: 'FILE',
    help: 'the kubeconfig to write',
    fallback: 'selfsame.kubeconfig',
    completes: 'file',
    parse: parsePath,
  }),
  engineDataDir: flag<string | undefined>({
    name: 'engine-data-dir',
    value: 'DIR',
    help: 'for a node of selfsame engine: the data directory of that engine',
    fallback: undefined,
    fallbackText: 'the cluster signs the certificate',
    completes: 'file',
    parse: parsePath,
  }),
};

export const controllersFlags = {
  kubeconfig: flag<string | undefined>({ ...kubeconfig, fallbackText: 'the in-cluster configuration' }),
  listenAddress: flag<string>({
    name: 'listen-address',
    value: 'ADDRESS',
    help: 'IP address to listen on for requests of the API server',
    fallback: '0.0.0.0',
    parse: parseAddress,
  }),
  webhookPort: flag<number>({
    name: 'webhook-port',
    value: 'PORT',
    help: 'TCP port of the webhook and the aggregated API; 0 picks a free port',
    fallback: 9443,
    parse: parsePortFlag,
  }),
  advertiseAddress: flag<string | undefined>({
    name: 'advertise-address',
    value: 'ADDRESS',
    help: 'IP address at which the API server reaches this process',
    fallback: undefined,
    fallbackText: 'the first address of this machine',
    parse: parseAddress,
  }),
  certificateLifetime: flag<number>({
    name: 'certificate-lifetime',
    value: 'TIME',
    help: 'lifetime of the certificates of services and agents; renewed at half of it',
    fallback: 30 * 86_400_000,
    fallbackText: '30d',
    parse: parseLifetime,
  }),
  caLifetime: flag<number>({
    name: 'ca-lifetime',
    value: 'TIME',
    help: 'lifetime of the certificate authorities; at least four times --certificate-lifetime',
    fallback: 730 * 86_400_000,
    fallbackText: '730d',
    parse: parseLifetime,
  }),
  logLevel,
};

export const nodeClusterFlags = {
  kubeconfig: flag<string | undefined>({
    ...kubeconfig,
    help: 'kubeconfig of a node of an existing cluster (selfsame join --as node)',
    fallbackText: 'the kubeconfig in the data directory',
  }),
  nodeIp: flag<string | undefined>({
    name: 'node-ip',
    value: 'ADDRESS',
    help: 'with --kubeconfig: IP address at which the agent is reached, published in the Node',
    fallback: undefined,
    fallbackText: '--address, or the first address of this machine',
    parse: parseAddress,
  }),
  hostname: flag<string | undefined>({
    name: 'hostname',
    value: 'NAME',
    help: 'with --kubeconfig: DNS name of the agent, published in the Node; API servers try it before the address',
    fallback: undefined,
    fallbackText: 'none',
    parse: parseDnsName,
  }),
  address: flag<string | undefined>({
    name: 'address',
    value: 'ADDRESS',
    help: 'with --kubeconfig: IP address that the agent listens on; 0.0.0.0 for all addresses',
    fallback: undefined,
    fallbackText: 'the value of --node-ip',
    parse: parseAddress,
  }),
  port: flag<number>({
    name: 'port',
    value: 'PORT',
    help: 'with --kubeconfig: TCP port of the agent; 0 picks a free port',
    fallback: 0,
    parse: parsePortFlag,
  }),
};
