/** Parses and renders `list [view] [vms:id,id]`. Pure. */
import type { HostVm, HostVmStats } from '#api/host-api.ts';
import { replaceControls } from '#lib/terminal/display-width.ts';
import { alignedTable } from '#lib/terminal/table.ts';
import { UsageError } from '#lib/command-line/command-error.ts';

const VIEWS = ['long', 'table', 'ids'] as const;
type View = (typeof VIEWS)[number];

const VMS = 'vms:';

/** The help text of the original vdsClient. */
export const LIST_USAGE = `list
            [view] [vms:vmId1,vmId2]
            Lists all available machines on the specified server.
            Optional vms list, should start with 'vms:' and follow with 'vmId1,vmId2,...'
            Optional views:
                "long"   all available configuration info (Default).
                "table"  table output with the fields: vmId, vmName, Status and IP.
                "ids"    all vmIds.
`;

export function parseList(words: readonly string[]): { readonly view: View; readonly vmList: readonly string[] } {
  const [first = 'long'] = words;
  const rest = first.startsWith(VMS) ? words : words.slice(1);
  const view = first.startsWith(VMS) ? 'long' : VIEWS.find((known) => known === first);
  if (view === undefined) throw new UsageError(`unknown view "${first}"; expected one of ${VIEWS.join(', ')}`);
  const [vms, surplus] = rest;
  if (surplus !== undefined) throw new UsageError(`unexpected argument "${surplus}"`);
  if (vms === undefined) return { view, vmList: [] };
  if (!vms.startsWith(VMS)) throw new UsageError(`unexpected argument "${vms}"; expected vms:vmId1,vmId2`);
  const vmList = vms
    .slice(VMS.length)
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
  if (vmList.length === 0) throw new UsageError(`"${vms}" names no VM; expected vms:vmId1,vmId2`);
  return { view, vmList };
}

/** Renders every key on its own line. */
export function longText({ vmId, status, ...rest }: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(rest)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([key, value]) => `\t${key} = ${replaceControls(typeof value === 'string' ? value : JSON.stringify(value))}\n`,
    );
  return `\n${String(vmId)}\n\tStatus = ${String(status)}\n${lines.join('')}`;
}

/**
 * Renders the table. Omits VMs without statistics, which were removed between the two calls. A star marks a VM whose
 * hypervisor does not respond.
 */
export function vmTableText(vms: readonly HostVm[], stats: readonly HostVmStats[]): string {
  const byId = new Map(stats.map((item) => [item.vmId, item]));
  const rows = vms.flatMap((vm) => {
    const found = byId.get(vm.vmId);
    if (found === undefined) return [];
    return [[vm.vmId, vm.vmName, `${found.status}${found.monitorResponse === '-1' ? '*' : ''}`, found.guestIPs ?? '']];
  });
  return `${alignedTable([['vmId', 'vmName', 'Status', 'IP'], ...rows], { gap: 2 })}\n`;
}
