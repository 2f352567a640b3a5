/** Checks of what the network of guests needs (docs/networking.md). Without root, guests have user-mode networking. */
import type { Finding } from '#doctor/finding.ts';
import type { ExaminedMachine } from '#doctor/machine.ts';

const USER_MODE =
  'guests have user-mode networking: they reach the outside and are reached by port-forward, but not each other, and their connections end at a live migration';
const NOT_STARTED = 'guests with a network cannot start; with --guest-subnets none they have user-mode networking';

/** The directories in which node agents look for plugins. */
const PLUGIN_DIRS = ['/opt/cni/bin', '/usr/lib/cni'];
const PLUGINS = ['bridge', 'static'];

export async function examineNetwork(machine: ExaminedMachine): Promise<Finding[]> {
  if (!machine.isRoot) {
    return [{ what: 'guest network', state: 'limited', message: `requires root: ${USER_MODE}`, fix: 'run as root' }];
  }
  return await Promise.all([
    examineTaps(machine),
    examinePlugins(machine),
    examineIpv6(machine),
    examineForeignRules(machine),
  ]);
}

async function examineTaps(machine: ExaminedMachine): Promise<Finding> {
  const what = 'guest network';
  const tun = await machine.file('/dev/net/tun');
  if (tun?.isWritable === true) return { what, state: 'works', message: '/dev/net/tun' };
  if (tun === undefined) {
    return { what, state: 'missing', message: `/dev/net/tun does not exist: ${NOT_STARTED}`, fix: 'modprobe tun' };
  }
  const fix = 'in a container: give it /dev/net/tun and CAP_NET_ADMIN';
  return { what, state: 'missing', message: `no permission to open /dev/net/tun: ${NOT_STARTED}`, fix };
}

async function examinePlugins(machine: ExaminedMachine): Promise<Finding> {
  const what = 'CNI plugins';
  const findDir = async (plugin: string) => {
    const found = await Promise.all(PLUGIN_DIRS.map((dir) => machine.file(`${dir}/${plugin}`)));
    return PLUGIN_DIRS.find((_, index) => found[index] !== undefined);
  };
  const dirs = await Promise.all(PLUGINS.map(findDir));
  const absent = PLUGINS.filter((_, index) => dirs[index] === undefined);
  if (absent.length === 0) {
    return { what, state: 'works', message: `${PLUGINS.join(' and ')} in ${[...new Set(dirs)].join(' and ')}` };
  }
  return {
    what,
    state: 'missing',
    message: `${absent.join(' and ')} not in ${PLUGIN_DIRS.join(' or ')}: ${NOT_STARTED}`,
    fix: 'apt-get install -y --no-install-recommends containernetworking-plugins',
  };
}

async function examineIpv6(machine: ExaminedMachine): Promise<Finding> {
  const what = 'IPv6';
  if ((await machine.file('/proc/sys/net/ipv6')) !== undefined)
    return { what, state: 'works', message: 'in the kernel' };
  return {
    what,
    state: 'limited',
    message: 'the kernel has no IPv6: the network of guests can have IPv4 only',
    fix: 'start the first time with --guest-subnets 10.244.0.0/16, or boot without ipv6.disable=1',
  };
}

interface Chain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  readonly hook?: string;
  readonly policy?: string;
}

const ROUTED_FAMILIES = new Set(['ip', 'ip6', 'inet']);

/** Finds chains of others that drop what guests exchange with the outside, such as Docker's. */
async function examineForeignRules(machine: ExaminedMachine): Promise<Finding> {
  const what = 'firewall';
  const listed = await machine.run('nft', ['-j', 'list', 'chains'], 'agent');
  const chains = listed?.works === true ? parseChains(listed.text) : undefined;
  if (chains === undefined) {
    return { what, state: 'limited', message: 'unknown: nft cannot list the rules of this machine' };
  }
  const closed: Chain[] = [];
  for (const chain of chains) if (isClosed(chain) && !(await hasException(machine, chain))) closed.push(chain);
  if (closed.length === 0)
    return { what, state: 'works', message: 'no other rules drop the packets of guests by default' };
  const names = closed.map(({ family, table, name }) => `${family} ${table} ${name}`).join(', ');
  return {
    what,
    state: 'limited',
    message: `dropped by ${names} unless a rule accepts it: what guests exchange with the outside`,
    fix: `${closed.flatMap((chain) => exceptions(chain, chains)).join('; ')}, with the name of the bridge (ss-...) from: ip -br link`,
  };
}

function isClosed({ family, table, hook, policy }: Chain): boolean {
  const isOwn = table.startsWith('selfsame_');
  return hook === 'forward' && policy === 'drop' && ROUTED_FAMILIES.has(family) && !isOwn;
}

/** Reports whether the table names a bridge of guests. */
async function hasException(machine: ExaminedMachine, { family, table }: Chain): Promise<boolean> {
  const rules = await machine.run('nft', ['list', 'table', family, table], 'agent');
  return /"ss-/.test(rules?.text ?? '');
}

/** Returns the commands that make an exception for a bridge of guests. */
function exceptions({ family, table, name }: Chain, chains: readonly Chain[]): string[] {
  if (table !== 'filter' || name !== 'FORWARD' || family === 'inet') {
    return ['i', 'o'].map((d) => `nft insert rule ${family} ${table} ${name} ${d}ifname BRIDGE accept`);
  }
  const hasUserChain = chains.some((c) => c.family === family && c.table === table && c.name === 'DOCKER-USER');
  const command = family === 'ip' ? 'iptables' : 'ip6tables';
  return ['i', 'o'].map((d) => `${command} -I ${hasUserChain ? 'DOCKER-USER' : name} -${d} BRIDGE -j ACCEPT`);
}

/** Returns undefined if the text is not a list of chains. */
function parseChains(text: string): Chain[] | undefined {
  try {
    const { nftables } = JSON.parse(text) as { nftables: readonly { readonly chain?: Chain }[] };
    return nftables.flatMap(({ chain }) => (chain === undefined ? [] : [chain]));
  } catch {
    return undefined;
  }
}
