/** A connection to the nodes that records the device map's `list` calls and can be made to fail. */
import { hostPath, type ListParameters } from '#api/host-api.ts';
import { internalError } from '#kube/api-error.ts';
import type { NodeConnections, NodePost } from '#subresources/node-connections.ts';

export class RecordingConnections implements Pick<NodeConnections, 'post'> {
  /** Every call of `list`, in order: the node, and the number of VMs that it was asked about. */
  readonly calls: { readonly node: string; readonly vms: number }[] = [];
  /** The number of further calls that fail. */
  failures = 0;
  readonly #nodes: Pick<NodeConnections, 'post'>;

  constructor(nodes: Pick<NodeConnections, 'post'>) {
    this.#nodes = nodes;
  }

  async post(request: NodePost): Promise<Buffer> {
    const { node, path, body } = request;
    const { vmList = [] } = JSON.parse(body.toString('utf8')) as ListParameters;
    if (path === hostPath('list')) this.calls.push({ node, vms: vmList.length });
    if (this.failures > 0) {
      this.failures--;
      throw internalError(`Cannot reach the agent of node "${node}": no connection in time`);
    }
    return await this.#nodes.post(request);
  }
}
