/**
 * The rules that keep an interface silent whose other end is not ours, so that it cannot leave its bridge: nothing leaves or
 * enters the namespace through it. Loaded before the interface exists. Pure.
 */
import { removeTable, replaceTable, silentTableOf } from '#node/network/linux/rules/rule-text.ts';

export function silentRules(podInterface: string): string {
  const [iif, oif] = [`iifname "${podInterface}" drop`, `oifname "${podInterface}" drop`];
  const table = silentTableOf(podInterface);
  return [
    replaceTable('inet', table, {
      // Before connection tracking, so that no state is made from packets that go nowhere.
      prerouting: ['type filter hook prerouting priority -400; policy accept;', iif],
      output: ['type filter hook output priority -400; policy accept;', oif],
      postrouting: ['type filter hook postrouting priority 300; policy accept;', oif],
    }),
    replaceTable('arp', table, {
      input: ['type filter hook input priority 0; policy accept;', iif],
      output: ['type filter hook output priority 0; policy accept;', oif],
    }),
    replaceTable('bridge', table, {
      prerouting: ['type filter hook prerouting priority -400; policy accept;', iif],
      postrouting: ['type filter hook postrouting priority 400; policy accept;', oif],
    }),
  ].join('');
}

/** Returns commands that end the silence. */
export function withoutSilentRules(podInterface: string): string {
  const table = silentTableOf(podInterface);
  return [...removeTable('inet', table), ...removeTable('arp', table), ...removeTable('bridge', table), ''].join('\n');
}
