/** The guest of the tour: its console and its reports. */
import { CONSOLE_CONTAINER, CREATED_BY_LABEL } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import { type TourApi, waitFor } from '#cli/tour/tour-api.ts';
import { verbPath } from '#cli/verb-path.ts';
import { PODS } from '#kube/core-kinds.ts';
import { TourError } from '#cli/tour/tour-error.ts';

const PROTOCOL = 'plain.kubevirt.io';
/** A guest may be busy with its own start when it is asked. */
const ANSWER_MS = 120_000;

export class TourGuest {
  readonly #api: TourApi;
  readonly #name: string;
  #looks = 0;

  constructor(api: TourApi, name: string) {
    this.#api = api;
    this.#name = name;
  }

  /** Its report of a start other than that of `notBootId`. */
  async boots(notBootId?: string): Promise<GuestReport> {
    return await waitFor(this.#api, `${this.#name} to boot`, async () => {
      const report = lastReport(await this.#consoleLog());
      return report !== undefined && report.facts['bootid'] !== notBootId ? report : undefined;
    });
  }

  /** What it sees now, after it has done what the lines say. */
  async sees(lines: readonly string[] = []): Promise<GuestReport> {
    const tag = `tour${++this.#looks}`;
    const heard = await this.#says([...lines, `probe ${tag}`], `GUEST END ${tag}`);
    const report = lastReport(heard, tag);
    if (report === undefined) throw new TourError(`unexpected answer from the guest: ${heard.slice(-300)}`);
    return report;
  }

  async #says(lines: readonly string[], until: string): Promise<string> {
    const { connection, namespace, signal } = this.#api;
    const path = verbPath('virtualmachineinstances', namespace, this.#name, 'console');
    const stream = await connection.openWebSocket(path, [PROTOCOL]);
    stream.on('error', () => {});
    let heard = '';
    stream.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')));
    try {
      stream.write(`${lines.join('\n')}\n`);
      const answered = async () => (heard.includes(until) ? heard : undefined);
      return await waitFor(this.#api, `${this.#name} to answer on its console`, answered, { timeoutMs: ANSWER_MS });
    } finally {
      signal.throwIfAborted();
      stream.destroy();
    }
  }

  async #consoleLog(): Promise<string> {
    const { namespace } = this.#api;
    const vmi = await this.#api.find(VIRTUAL_MACHINE_INSTANCES, this.#name);
    if (vmi === undefined) return '';
    const pods = await this.#api.list(PODS, `${CREATED_BY_LABEL}=${vmi.metadata.uid}`);
    // One that has moved has another for a moment.
    const pod = pods.find(({ spec }) => spec.nodeName === vmi.status?.nodeName) ?? pods[0];
    if (pod === undefined) return '';
    const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}/log?container=${CONSOLE_CONTAINER}`;
    // Before its node has begun with it there is none.
    return await this.#api.connection.getText(path).catch(() => '');
  }
}
