/** Adopts what earlier node agents left: running guests, guests that ended meanwhile, and interrupted starts. */
import { realpath } from 'node:fs/promises';
import { relative } from 'node:path';
import type { Clock } from '#lib/clock.ts';
import type { QemuContext } from '#node/hypervisor/qemu/process/context.ts';
import { listDomainDirs, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { DomainRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import { DetachedProcess, findProcessesBelow, type ProcessIdentity } from '#node/hypervisor/qemu/process/process.ts';
import { QemuDomain } from '#node/hypervisor/qemu/qemu-domain.ts';
import { qemuMarker } from '#node/hypervisor/qemu/start.ts';
import { swtpmMarker } from '#node/hypervisor/qemu/state/swtpm.ts';
import { removeTap, tapsOf } from '#node/hypervisor/qemu/process/tap.ts';

const CONCURRENCY = 16;
const MONITOR_TIMEOUT_MS = 5000;
const KILL_MS = 5000;

export async function adoptDomains(
  root: string,
  context: QemuContext,
  onChange: (id: string) => void,
): Promise<QemuDomain[]> {
  const waiting = await listDomainDirs(root);
  const leftovers = await findLeftoverProcesses(root);
  await endUnreachableGuests(leftovers, waiting, context);
  const adopted: QemuDomain[] = [];
  const worker = async () => {
    for (let dir = waiting.pop(); dir !== undefined; dir = waiting.pop()) {
      try {
        const domain = await adoptDomain(dir, leftovers.get(dir.id) ?? [], context, onChange);
        if (domain !== undefined) adopted.push(domain);
      } catch (err) {
        context.log.error({ err, domain: dir.id }, 'Cannot adopt a domain');
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return adopted;
}

/** Returns the QEMU and swtpm processes below the directory by domain id, including those of earlier agents. */
async function findLeftoverProcesses(root: string): Promise<ReadonlyMap<string, readonly ProcessIdentity[]>> {
  const path = await realpath(root);
  const found = await findProcessesBelow(path);
  const byId = Map.groupBy(found, ({ cwd }) => relative(path, cwd).split('/')[0] ?? '');
  return new Map(
    [...byId].map(([id, processes]) => {
      const ours = processes.filter(({ words }) => words.includes(qemuMarker(id)) || words.includes(swtpmMarker(id)));
      return [id, ours.map(({ identity }) => identity)];
    }),
  );
}

/**
 * Ends guests whose directory was removed. They can no longer be reached or stopped, and they hold the disks on which
 * their VM would be started again.
 */
async function endUnreachableGuests(
  leftovers: ReadonlyMap<string, readonly ProcessIdentity[]>,
  dirs: readonly DomainDir[],
  { clock, log, sandboxes }: QemuContext,
): Promise<void> {
  const known = new Set(dirs.map(({ id }) => id));
  // The processes of a sandbox do not show a directory that was removed.
  for (const id of (await sandboxes?.list()) ?? []) {
    if (known.has(id)) continue;
    log.error({ domain: id }, 'The directory of a guest was removed; ending the guest');
    await sandboxes
      ?.remove(id)
      .catch((err: unknown) => log.error({ err, domain: id }, 'Cannot end a guest whose directory was removed'));
  }
  for (const [id, processes] of leftovers) {
    if (known.has(id) || processes.length === 0) continue;
    log.error(
      { domain: id, pids: processes.map(({ pid }) => pid) },
      'The directory of a running guest was removed; ending the guest',
    );
    await killAll(processes, clock);
  }
}

async function adoptDomain(
  dir: DomainDir,
  processes: readonly ProcessIdentity[],
  context: QemuContext,
  onChange: (id: string) => void,
): Promise<QemuDomain | undefined> {
  const record = await dir.readRecord();
  if (record === 'damaged' && processes.length > 0) {
    // A guest of a user may run there, so an administrator has to decide.
    context.log.error(
      { domain: dir.id, path: dir.path },
      'Cannot read the record of a domain whose processes run; leaving it alone',
    );
    return undefined;
  }
  if (record === 'damaged')
    context.log.error({ domain: dir.id }, 'Cannot read the record of a domain that has ended; removing it');
  if (typeof record === 'string' || record.started === undefined) {
    await removeInterruptedStart(dir, typeof record === 'string' ? undefined : record, processes, context);
    return undefined;
  }
  const { started } = record;
  const domain = new QemuDomain({
    dir,
    record: { ...record, started },
    qemu: new DetachedProcess(started.qemu, context.clock),
    swtpm: started.swtpm && new DetachedProcess(started.swtpm, context.clock),
    context,
    onChange,
  });
  if ((await domain.adopt({ timeoutMs: MONITOR_TIMEOUT_MS })) === 'domain') return domain;
  await domain.destroy();
  await domain.remove();
  return undefined;
}

/**
 * Removes an interrupted start. Its guest never ran, so it can be started again; its volumes are then created again,
 * too.
 */
async function removeInterruptedStart(
  dir: DomainDir,
  record: DomainRecord | undefined,
  processes: readonly ProcessIdentity[],
  { clock, sandboxes }: QemuContext,
): Promise<void> {
  await killAll(processes, clock);
  await sandboxes?.remove(dir.id);
  if (record !== undefined) for (const { name } of tapsOf(record.definition)) await removeTap(name);
  await dir.remove();
}

async function killAll(processes: readonly ProcessIdentity[], clock: Clock): Promise<void> {
  for (const identity of processes) {
    const process = new DetachedProcess(identity, clock);
    await process.kill('SIGKILL');
    await process.waitForExit(KILL_MS);
  }
}
