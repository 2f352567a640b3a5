/** Access to the guest of the tour: its console and its reports. */
import { CONSOLE_CONTAINER, CREATED_BY_LABEL, PLAIN_STREAM_PROTOCOL } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import { TourError, type TourApi, waitFor } from '#cli/tour/tour-api.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { PODS } from '#kube/core-kinds.ts';

/** Long, because the guest may still be starting. */
const RESPONSE_TIMEOUT_MS = 120_000;

export class TourGuest {
  readonly #api: TourApi;
  readonly #name: string;
  #probes = 0;

  constructor(api: TourApi, name: string) {
    this.#api = api;
    this.#name = name;
  }

  /** Waits for a boot other than `notBootId`, and returns its report. */
  async waitForBoot(notBootId?: string): Promise<GuestReport> {
    return await waitFor(this.#api, `${this.#name} to boot`, async () => {
      const report = lastReport(await this.#consoleLog());
      return report !== undefined && report.facts['bootid'] !== notBootId ? report : undefined;
    });
  }

  /** Executes the lines in the guest and returns its new report. */
  async probe(lines: readonly string[] = []): Promise<GuestReport> {
    const tag = `tour${++this.#probes}`;
    const output = await this.#send([...lines, `probe ${tag}`], `GUEST END ${tag}`);
    const report = lastReport(output, tag);
    if (report === undefined) throw new TourError(`unexpected response from the guest: ${output.slice(-300)}`);
    return report;
  }

  async #send(lines: readonly string[], until: string): Promise<string> {
    const { connection, namespace, signal } = this.#api;
    const path = verbPath('virtualmachineinstances', namespace, this.#name, 'console');
    const stream = await connection.openWebSocket(path, [PLAIN_STREAM_PROTOCOL]);
    stream.on('error', () => {});
    let output = '';
    stream.on('data', (chunk: Buffer) => (output += chunk.toString('latin1')));
    try {
      stream.write(`${lines.join('\n')}\n`);
      const hasResponse = async () => (output.includes(until) ? output : undefined);
      return await waitFor(this.#api, `${this.#name} to respond on its console`, hasResponse, {
        timeoutMs: RESPONSE_TIMEOUT_MS,
      });
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
    // A migrated guest briefly has two pods.
    const pod = pods.find(({ spec }) => spec.nodeName === vmi.status?.nodeName) ?? pods[0];
    if (pod === undefined) return '';
    const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}/log?container=${CONSOLE_CONTAINER}`;
    // There is no log before the node has started the pod.
    return await this.#api.connection.getText(path).catch(() => '');
  }
}
