/**
 * Finds rules of others on the host that keep guests from the outside or from DNS: a chain of the forward or input hook
 * that drops by its policy or by its last rule, as Docker and firewalls make them. nftables has no rule that another
 * chain cannot overrule with a drop, so people must change them; this says how.
 */
import type { RunOnHost } from '#node/network/linux/host/host-commands.ts';
import { GUARD_TABLE } from '#node/network/linux/host/guard-rules.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';

interface Chain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  readonly hook?: string;
  readonly policy?: string;
}
type Listed = { readonly chain?: Chain; readonly rule?: { readonly expr?: readonly Record<string, unknown>[] } };

const FAMILIES: Readonly<Record<string, readonly (4 | 6)[]>> = { ip: [4], ip6: [6], inet: [4, 6] };
const OWN_TABLE = /^selfsame_/;

/** Returns a sentence for each chain. Throws HostCommandError if nft is missing. */
export async function findForeignRules(run: RunOnHost, plan: NetworkPlan): Promise<string[]> {
  const families = new Set(plan.subnets.map(({ address }) => address.family));
  const chains = parse(await run('nft', ['-j', 'list', 'chains'])).flatMap(({ chain }) => (chain ? [chain] : []));
  const found: string[] = [];
  for (const chain of chains) {
    if (OWN_TABLE.test(chain.table) || chain.table === GUARD_TABLE) continue;
    if (chain.hook !== 'forward' && chain.hook !== 'input') continue;
    if (!(FAMILIES[chain.family] ?? []).some((family) => families.has(family))) continue;
    const rules = await run('nft', ['-j', 'list', 'chain', chain.family, chain.table, chain.name]);
    if (!isClosed(chain, parse(rules))) continue;
    const table = await run('nft', ['list', 'table', chain.family, chain.table]).catch(() => '');
    // A table that names our bridge makes an exception for it.
    if (!table.includes(plan.bridge)) found.push(describe(chain, chains, plan));
  }
  return found;
}

function parse(text: string): Listed[] {
  return (JSON.parse(text) as { nftables: Listed[] }).nftables;
}

/** Reports whether the chain drops what none of its rules accepts. */
function isClosed({ policy }: Chain, listed: readonly Listed[]): boolean {
  const last = listed.flatMap(({ rule }) => (rule === undefined ? [] : [rule])).at(-1);
  const words = (last?.expr ?? []).flatMap((expression) => Object.keys(expression)).filter((key) => key !== 'counter');
  return policy === 'drop' || (words.length === 1 && (words[0] === 'drop' || words[0] === 'reject'));
}

function describe({ family, table, name, hook }: Chain, chains: readonly Chain[], { bridge }: NetworkPlan): string {
  const effect = hook === 'forward' ? 'packets between guests and the outside' : 'DNS queries of guests';
  return (
    `The chain ${name} of the nftables table ${family} ${table}, which is not ours, drops ${effect}; allow them with: ` +
    exceptions({ family, table, name, hook }, chains, bridge).join('; ')
  );
}

/** Returns the commands that make an exception for our bridge. */
function exceptions({ family, table, name, hook }: Omit<Chain, 'policy'>, chains: readonly Chain[], bridge: string) {
  const isCommand = table === 'filter' && (name === 'FORWARD' || name === 'INPUT') && family !== 'inet';
  const directions = hook === 'forward' ? ['i', 'o'] : ['i'];
  if (!isCommand) {
    return directions.map((d) => `nft insert rule ${family} ${table} ${name} ${d}ifname ${bridge} accept`);
  }
  const hasUserChain = chains.some((c) => c.family === family && c.table === table && c.name === 'DOCKER-USER');
  const chain = hook === 'forward' && hasUserChain ? 'DOCKER-USER' : name;
  const command = family === 'ip' ? 'iptables' : 'ip6tables';
  return directions.map((d) => `${command} -I ${chain} -${d} ${bridge} -j ACCEPT`);
}
