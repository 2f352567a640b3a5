/** The device map's way to the nodes, with a ledger of what it asked for; it can be made to fail. */
import { hostPath, type ListParameters } from '#api/host-api.ts';
import { internalError } from '#kube/api-error.ts';
import type { NodeConnections, NodePost } from '#subresources/node-connections.ts';

export class WatchedLists implements Pick<NodeConnections, 'post'> {
  /** Every call of `list`, in order: the node, and how many VMs it was asked for. */
  readonly calls: { readonly node: string; readonly vms: number }[] = [];
  /** That many calls more find nobody. */
  failures = 0;
  readonly #nodes: Pick<NodeConnections, 'post'>;

  constructor(nodes: Pick<NodeConnections, 'post'>) {
    this.#nodes = nodes;
  }

  async post(asked: NodePost): Promise<Buffer> {
    const { node, path, body } = asked;
    const { vmList = [] } = JSON.parse(body.toString('utf8')) as ListParameters;
    if (path === hostPath('list')) this.calls.push({ node, vms: vmList.length });
    if (this.failures > 0) {
      this.failures--;
      throw internalError(`Cannot reach the agent of node "${node}": no connection in time`);
    }
    return await this.#nodes.post(asked);
  }
}
