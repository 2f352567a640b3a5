/**
 * Streams between agents of one process, as TLS would carry them between nodes. What is said is told line by line, so
 * that a test can lose somebody after any of them; what has to do with a node breaks when the node is lost.
 */
import { duplexPair, PassThrough, type Duplex } from 'node:stream';
import type { Peers } from '#node/peers-port.ts';
import type { MigrationGate } from '#node/endpoint/endpoint-agent.ts';

export interface PeerMessage {
  readonly from: string;
  readonly to: string;
  readonly type: string;
}

interface Line {
  readonly nodes: readonly [string, string];
  readonly ends: readonly Duplex[];
}

export class PeerStreams {
  /** Called with each message before it is handed on; what it does to a node then, the message does not survive. */
  onMessage: ((message: PeerMessage) => void) | undefined;
  readonly #lines = new Set<Line>();
  readonly #gateOf: (node: string) => MigrationGate | undefined;

  /** `gateOf`: undefined while nobody answers there. */
  constructor(gateOf: (node: string) => MigrationGate | undefined) {
    this.#gateOf = gateOf;
  }

  peersOf(from: string): Peers {
    return {
      open: async (to) => {
        const gate = this.#gateOf(to);
        if (gate === undefined) throw new Error(`Cannot reach the agent of node "${to}": no connection`);
        const [near, nearWire] = duplexPair();
        const [far, farWire] = duplexPair();
        const line: Line = { nodes: [from, to], ends: [near, nearWire, far, farWire] };
        this.#lines.add(line);
        for (const end of line.ends) {
          end.on('error', () => {});
          end.once('close', () => this.#break(line));
        }
        this.#carry(nearWire, farWire, { from, to });
        this.#carry(farWire, nearWire, { from: to, to: from });
        void gate.accept(from, far).catch(() => this.#break(line));
        return near;
      },
    };
  }

  /** All that goes on with this node breaks at once. */
  lose(node: string): void {
    for (const line of this.#lines) if (line.nodes.includes(node)) this.#break(line);
  }

  #carry(source: Duplex, target: Duplex, way: { readonly from: string; readonly to: string }): void {
    let rest = '';
    const lines = new PassThrough();
    source.pipe(lines);
    lines.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString('utf8')).split('\n');
      rest = parts.pop() ?? '';
      for (const text of parts) {
        const { type } = JSON.parse(text) as { type: string };
        if (type !== 'still-there') this.onMessage?.({ ...way, type });
        if (!target.destroyed) target.write(`${text}\n`);
      }
    });
    lines.on('end', () => target.end());
  }

  #break(line: Line): void {
    if (!this.#lines.delete(line)) return;
    for (const end of line.ends) end.destroy();
  }
}
