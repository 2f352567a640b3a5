/**
 * The rules that keep an interface silent whose other end is not ours, so that it cannot leave its bridge: nothing leaves or
 * enters the namespace through it. Loaded before the interface exists. Pure.
 */
import { defineTable, removeTable, silentTableOf } from '#node/network/linux/rules/rule-text.ts';

/** Replaces what is there, because an interface may be silenced again. */
export function silentRules(podInterface: string): string {
  const [iif, oif] = [`iifname "${podInterface}" drop`, `oifname "${podInterface}" drop`];
  const table = silentTableOf(podInterface);
  return [
    withoutSilentRules(podInterface),
    defineTable('inet', table, {
      // Before connection tracking, so that no state is made from packets that go nowhere.
      prerouting: ['type filter hook prerouting priority -400; policy accept;', iif],
      output: ['type filter hook output priority -400; policy accept;', oif],
      postrouting: ['type filter hook postrouting priority 300; policy accept;', oif],
    }),
    defineTable('arp', table, {
      input: ['type filter hook input priority 0; policy accept;', iif],
      output: ['type filter hook output priority 0; policy accept;', oif],
    }),
    defineTable('bridge', table, {
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
