/** The text of rule sets of nftables. Pure. */
import type { GuestAddress } from '#node/network/linux/interface-plan.ts';

/** The name of the table of one interface of a pod, in each family. */
export function ruleTableOf(podInterface: string): string {
  return `selfsame_${podInterface.replaceAll(/[^A-Za-z0-9]/g, '_')}`;
}

/** The name of the tables that keep one interface of a pod silent. */
export function silentTableOf(podInterface: string): string {
  return `${ruleTableOf(podInterface)}_silent`;
}

/** Returns the definition of a table that does not exist yet: it takes a quarter of the time of a replacement. */
export function defineTable(
  family: 'inet' | 'bridge' | 'arp',
  table: string,
  chains: Readonly<Record<string, readonly string[]>>,
): string {
  const body = Object.entries(chains).flatMap(([name, rules]) => [
    `  chain ${name} {`,
    ...rules.map((rule) => `    ${rule}`),
    '  }',
  ]);
  return [`table ${family} ${table} {`, ...body, '}', ''].join('\n');
}

/** Returns commands that remove a table, whether it exists or not. */
export function removeTable(family: 'inet' | 'bridge' | 'arp', table: string): string[] {
  return [`table ${family} ${table}`, `delete table ${family} ${table}`];
}

/** The word for an address in rules. */
export function family({ pod }: GuestAddress): 'ip' | 'ip6' {
  return pod.family === 4 ? 'ip' : 'ip6';
}
