/** The flags of the commands for clusters of others: install, uninstall, join, controllers, and node there. */
import { isIP } from 'node:net';

interface ClusterFlag<T> {
  readonly name: string;
  readonly value: string;
  readonly help: string;
  readonly fallbackText?: string;
  readonly fallback: T;
  /** Says yes by itself, without a value. */
  readonly bare?: true;
  parse(text: string): { ok: T } | { mustBe: string };
}

const flag = <T>(options: ClusterFlag<T>): ClusterFlag<T> => options;

const MAX_PORT = 65_535;
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MIN_LIFETIME_MS = 5000;

const path = (text: string) => (text === '' ? { mustBe: 'a path' } : { ok: text });
const address = (text: string) => (isIP(text) === 0 ? { mustBe: 'an IP address' } : { ok: text });

function portNumber(text: string): { ok: number } | { mustBe: string } {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  return port <= MAX_PORT ? { ok: port } : { mustBe: `a port number from 0 to ${MAX_PORT}` };
}

function lifetime(text: string): { ok: number } | { mustBe: string } {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
  return ms >= MIN_LIFETIME_MS ? { ok: ms } : { mustBe: 'a time of at least 5s, such as 12h or 90d' };
}

function yesOrNo(text: string): { ok: boolean } | { mustBe: string } {
  return text === 'true' || text === 'false' ? { ok: text === 'true' } : { mustBe: 'true or false' };
}

const kubeconfig = flag<string | undefined>({
  name: 'kubeconfig',
  value: 'FILE',
  help: 'how to reach the cluster, and as whom',
  fallback: undefined,
  fallbackText: 'none',
  parse: path,
});

export const installFlags = {
  kubeconfig,
  apply: flag<boolean>({
    name: 'apply',
    value: '',
    bare: true,
    help: 'apply everything instead of printing it',
    fallback: false,
    parse: yesOrNo,
  }),
  dryRun: flag<boolean>({
    name: 'dry-run',
    value: '',
    bare: true,
    help: 'with --apply: let the API server look at everything, and change nothing',
    fallback: false,
    parse: yesOrNo,
  }),
};

export const uninstallFlags = { kubeconfig };

const ROLES = ['controllers', 'node'] as const;

export const joinFlags = {
  kubeconfig,
  as: flag<(typeof ROLES)[number]>({
    name: 'as',
    value: 'ROLE',
    help: 'who joins: controllers or node',
    fallback: 'controllers',
    parse: (text) =>
      text === 'controllers' || text === 'node' ? { ok: text } : { mustBe: `one of ${ROLES.join(', ')}` },
  }),
  name: flag<string>({
    name: 'name',
    value: 'NAME',
    help: 'the name of the node',
    fallback: 'node-1',
    parse: (text) =>
      /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/.test(text)
        ? { ok: text }
        : { mustBe: 'a lower-case name of at most 63 characters' },
  }),
  out: flag<string>({
    name: 'out',
    value: 'FILE',
    help: 'the kubeconfig to write',
    fallback: 'selfsame.kubeconfig',
    parse: path,
  }),
  engineDataDir: flag<string | undefined>({
    name: 'engine-data-dir',
    value: 'DIR',
    help: 'for a node of selfsame engine: the data directory of that engine',
    fallback: undefined,
    fallbackText: 'the cluster signs',
    parse: path,
  }),
};

export const controllersFlags = {
  kubeconfig: flag<string | undefined>({ ...kubeconfig, fallbackText: 'as in a pod of the cluster' }),
  listenAddress: flag<string>({
    name: 'listen-address',
    value: 'ADDRESS',
    help: 'IP address to listen on for the API server',
    fallback: '0.0.0.0',
    parse: address,
  }),
  webhookPort: flag<number>({
    name: 'webhook-port',
    value: 'PORT',
    help: 'TCP port of webhook and aggregated API; 0 takes a free one',
    fallback: 9443,
    parse: portNumber,
  }),
  advertiseAddress: flag<string | undefined>({
    name: 'advertise-address',
    value: 'ADDRESS',
    help: 'IP address under which the API server reaches this process',
    fallback: undefined,
    fallbackText: 'the first of this machine',
    parse: address,
  }),
  certificateLifetime: flag<number>({
    name: 'certificate-lifetime',
    value: 'TIME',
    help: 'of the certificates of our services and agents; renewed at half of it',
    fallback: 30 * 86_400_000,
    fallbackText: '30d',
    parse: lifetime,
  }),
  caLifetime: flag<number>({
    name: 'ca-lifetime',
    value: 'TIME',
    help: 'of our certificate authorities; at least four times the one before',
    fallback: 730 * 86_400_000,
    fallbackText: '730d',
    parse: lifetime,
  }),
};

export const nodeClusterFlags = {
  kubeconfig: flag<string | undefined>({
    ...kubeconfig,
    help: 'of a node of another cluster (selfsame join --as node)',
    fallbackText: 'that of the data directory',
  }),
  address: flag<string | undefined>({
    name: 'address',
    value: 'ADDRESS',
    help: 'with --kubeconfig: IP address of this machine under which others reach the agent',
    fallback: undefined,
    fallbackText: 'the first of this machine',
    parse: address,
  }),
  port: flag<number>({
    name: 'port',
    value: 'PORT',
    help: 'with --kubeconfig: TCP port of the agent; 0 takes a free one',
    fallback: 0,
    parse: portNumber,
  }),
};
