/** What earlier agents left: guests that run, guests that ended meanwhile, starts that were cut off. */
import { realpath } from 'node:fs/promises';
import { relative } from 'node:path';
import type { Clock } from '#lib/clock.ts';
import type { QemuContext } from './context.ts';
import { listDomainDirs, type DomainDir } from './domain-dir.ts';
import type { DomainRecord } from './domain-record.ts';
import { OutlivingProcess, processesBelow, type ProcessIdentity } from './process.ts';
import { QemuDomain } from './qemu-domain.ts';
import { qemuMark } from './start.ts';
import { swtpmMark } from './swtpm.ts';
import { removeTap, tapsOf } from './tap.ts';

const SIDE_BY_SIDE = 16;
const MONITOR_TIMEOUT_MS = 5000;
const KILL_MS = 5000;

export async function adoptDomains(
  root: string,
  context: QemuContext,
  changed: (id: string) => void,
): Promise<QemuDomain[]> {
  const waiting = await listDomainDirs(root);
  const left = await leftProcesses(root);
  await endUnreachable(left, waiting, context);
  const adopted: QemuDomain[] = [];
  const worker = async () => {
    for (let dir = waiting.pop(); dir !== undefined; dir = waiting.pop()) {
      try {
        const domain = await adoptDomain(dir, left.get(dir.id) ?? [], context, changed);
        if (domain !== undefined) adopted.push(domain);
      } catch (err) {
        context.log.error({ err, domain: dir.id }, 'cannot take over a domain');
      }
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker));
  return adopted;
}

/** Of QEMU and swtpm below the directory, whoever started them, by the id of their domain. */
async function leftProcesses(root: string): Promise<ReadonlyMap<string, readonly ProcessIdentity[]>> {
  const path = await realpath(root);
  const found = await processesBelow(path);
  const byId = Map.groupBy(found, ({ cwd }) => relative(path, cwd).split('/')[0] ?? '');
  return new Map(
    [...byId].map(([id, processes]) => {
      const ours = processes.filter(({ words }) => words.includes(qemuMark(id)) || words.includes(swtpmMark(id)));
      return [id, ours.map(({ identity }) => identity)];
    }),
  );
}

/**
 * Guests whose directory somebody removed: nobody can reach, stop or find them any more, and they hold the disks that
 * their VM is about to be started on again.
 */
async function endUnreachable(
  left: ReadonlyMap<string, readonly ProcessIdentity[]>,
  dirs: readonly DomainDir[],
  { clock, log }: QemuContext,
): Promise<void> {
  const known = new Set(dirs.map(({ id }) => id));
  for (const [id, processes] of left) {
    if (known.has(id) || processes.length === 0) continue;
    log.error({ domain: id, pids: processes.map(({ pid }) => pid) }, 'the directory of a guest is gone; ending it');
    await endAll(processes, clock);
  }
}

async function adoptDomain(
  dir: DomainDir,
  processes: readonly ProcessIdentity[],
  context: QemuContext,
  changed: (id: string) => void,
): Promise<QemuDomain | undefined> {
  const record = await dir.readRecord();
  if (record === 'damaged' && processes.length > 0) {
    // Whatever runs there is somebody's guest: people decide.
    context.log.error({ domain: dir.id, path: dir.path }, 'cannot read the record of a domain; it is left alone');
    return undefined;
  }
  if (record === 'damaged') context.log.error({ domain: dir.id }, 'a domain without a readable record has ended');
  if (typeof record === 'string' || record.started === undefined) {
    await clearCutOffStart(dir, typeof record === 'string' ? undefined : record, processes, context);
    return undefined;
  }
  const { started } = record;
  const domain = new QemuDomain({
    dir,
    record: { ...record, started },
    qemu: new OutlivingProcess(started.qemu, context.clock),
    swtpm: started.swtpm && new OutlivingProcess(started.swtpm, context.clock),
    context,
    changed,
  });
  if ((await domain.takeOver({ timeoutMs: MONITOR_TIMEOUT_MS })) === 'domain') return domain;
  await domain.destroy();
  await domain.remove();
  return undefined;
}

/** Nothing of it ever ran: whoever wants the guest starts it anew. Volumes are made again then. */
async function clearCutOffStart(
  dir: DomainDir,
  record: DomainRecord | undefined,
  processes: readonly ProcessIdentity[],
  { clock }: QemuContext,
): Promise<void> {
  await endAll(processes, clock);
  if (record !== undefined) for (const { name } of tapsOf(record.definition)) await removeTap(name);
  await dir.remove();
}

async function endAll(processes: readonly ProcessIdentity[], clock: Clock): Promise<void> {
  for (const identity of processes) {
    const process = new OutlivingProcess(identity, clock);
    await process.kill('SIGKILL');
    await process.gone(KILL_MS);
  }
}
