/** What earlier agents left: guests that run, guests that ended meanwhile, starts that were cut off. */
import type { QemuContext } from './context.ts';
import { listDomainDirs, type DomainDir } from './domain-dir.ts';
import type { DomainRecord } from './domain-record.ts';
import { findByArgument, OutlivingProcess } from './process.ts';
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
  const adopted: QemuDomain[] = [];
  const worker = async () => {
    for (let dir = waiting.pop(); dir !== undefined; dir = waiting.pop()) {
      try {
        const domain = await adoptDomain(dir, context, changed);
        if (domain !== undefined) adopted.push(domain);
      } catch (err) {
        context.log.error({ err, domain: dir.id }, 'cannot take over a domain');
      }
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker));
  return adopted;
}

async function adoptDomain(
  dir: DomainDir,
  context: QemuContext,
  changed: (id: string) => void,
): Promise<QemuDomain | undefined> {
  const record = await dir.readRecord();
  if (record === 'damaged') {
    // Whatever runs there is somebody's guest: people decide.
    context.log.error({ domain: dir.id, path: dir.path }, 'cannot read the record of a domain; it is left alone');
    return undefined;
  }
  if (record === 'none' || record.started === undefined) {
    await clearCutOffStart(dir, record === 'none' ? undefined : record, context);
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
  { clock }: QemuContext,
): Promise<void> {
  if (record !== undefined) {
    const words = [qemuMark(dir.id), swtpmMark(dir.id)];
    const left = (await Promise.all(words.map(findByArgument))).flat();
    for (const identity of left) {
      const process = new OutlivingProcess(identity, clock);
      await process.kill('SIGKILL');
      await process.gone(KILL_MS);
    }
    for (const { name } of tapsOf(record.definition)) await removeTap(name);
  }
  await dir.remove();
}
