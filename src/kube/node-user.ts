/** The user names of nodes, as in their certificates. Pure. */
export const NODES_GROUP = 'system:nodes';
export const NODE_USER_PREFIX = 'system:node:';

export const userOfNode = (name: string) => `${NODE_USER_PREFIX}${name}`;

/** Returns the name of the node, or undefined if the user is not a node. */
export function nodeOfUser(user: string): string | undefined {
  return user.startsWith(NODE_USER_PREFIX) ? user.slice(NODE_USER_PREFIX.length) || undefined : undefined;
}
