/** The cost of the device map as a table, with its bars. Pure. */
import type { DeviceMapFigures, Span } from './measure-device-map.ts';

const WIDTHS = [22, 26, 9, 11, 12, 13, 13] as const;
const COLUMNS = ['', 'list calls', 'VMs', 'bytes', 'seconds', 'server CPU', 'nodes CPU'];

export function deviceMapText(figures: DeviceMapFigures): string {
  const { vms, changed, nodes, start, rest, change } = figures;
  const fullBytes = (start.bytes / Math.max(1, start.vms)) * (vms / nodes);
  return [
    `Stable device addresses: ${formatCount(vms)} simulated VMs on ${nodes} nodes`,
    '',
    line(COLUMNS),
    spanText('all started', start),
    spanText('at rest', rest),
    spanText(`${formatCount(changed)} changed`, change),
    '',
    `at rest: ${callsOf(rest)} list calls; expected 0: ${callsOf(rest) === 0 ? 'ok' : 'missed'}`,
    `changed: at most ${mostCalls(change)} list calls to a node; expected 1: ${mostCalls(change) <= 1 ? 'ok' : 'missed'}`,
    `a complete list would be ${formatBytes(fullBytes)} per node and call`,
  ].join('\n');
}

export function callsOf({ calls }: Pick<Span, 'calls'>): number {
  return Object.values(calls).reduce((sum, one) => sum + one, 0);
}

function mostCalls({ calls }: Pick<Span, 'calls'>): number {
  return Math.max(0, ...Object.values(calls));
}

function spanText(what: string, span: Span): string {
  const nodes = Object.entries(span.calls).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const calls = nodes.map(([node, one]) => `${node} ${one}`).join(', ');
  const seconds = span.seconds.toFixed(1);
  return line([
    what,
    calls === '' ? 'none' : calls,
    formatCount(span.vms),
    formatBytes(span.bytes),
    seconds,
    formatMs(span.serverCpuMs),
    formatMs(span.nodesCpuMs),
  ]);
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i < 2 ? cell.padEnd(WIDTHS[i] ?? 0) : cell.padStart(WIDTHS[i] ?? 0)))
    .join(' ')
    .trimEnd();
}

function formatCount(value: number): string {
  return value.toLocaleString('en');
}

function formatBytes(bytes: number): string {
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function formatMs(value: number): string {
  return value < 10_000 ? `${value.toFixed(0)} ms` : `${(value / 1000).toFixed(1)} s`;
}
