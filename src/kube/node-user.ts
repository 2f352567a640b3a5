/** Nodes as users of the API: what their certificates say. Pure. */
export const NODES_GROUP = 'system:nodes';
export const NODE_USER_PREFIX = 'system:node:';

export const userOfNode = (name: string) => `${NODE_USER_PREFIX}${name}`;

/** The node that it is; undefined = somebody else. */
export function nodeOfUser(user: string): string | undefined {
  return user.startsWith(NODE_USER_PREFIX) ? user.slice(NODE_USER_PREFIX.length) || undefined : undefined;
}
