/** The block nodes and jobs of a simulated QEMU. Commands that it does not know succeed. */
import type { Command } from '#node/hypervisor/qemu/testing/scripted-monitor.ts';

export interface SimulatedJob {
  readonly id: string;
  status: string;
  error?: string;
}

export class SimulatedBlocks {
  readonly nodes = new Set<string>();
  readonly jobs = new Map<string, SimulatedJob>();

  answer({ execute, arguments: args = {} }: Command): unknown {
    switch (execute) {
      case 'query-jobs':
        return [...this.jobs.values()].map((job) => ({ ...job, 'current-progress': 1, 'total-progress': 2 }));
      case 'query-named-block-nodes':
        return [...this.nodes].map((name) => ({ 'node-name': name }));
      case 'blockdev-add':
        this.nodes.add(String(args['node-name']));
        return {};
      case 'blockdev-del':
        this.nodes.delete(String(args['node-name']));
        return {};
      case 'job-dismiss':
        this.jobs.delete(String(args['id']));
        return {};
      default:
        return {};
    }
  }

  protected setJob(id: unknown, status: string): void {
    this.jobs.set(String(id), { id: String(id), status });
  }
}
