/** The user names of nodes, as in their certificates. Pure. */
export const NODES_GROUP = 'system:nodes';
export const NODE_USER_PREFIX = 'system:node:';

/**
 * An annotation of a CustomResourceDefinition: the label of its objects that names their node. Nodes read only such
 * objects, and list them only with this label.
 */
export const NODE_LABEL_ANNOTATION = 'selfsame.io/node-label';
/** An annotation beside NODE_LABEL_ANNOTATION: fields of the objects that name further nodes, separated by commas. */
export const NODE_FIELDS_ANNOTATION = 'selfsame.io/node-fields';

/**
 * An annotation of a CustomResourceDefinition: another collection, such as `virtualmachineinstances.kubevirt.io`. Nodes
 * read only objects that have the same name as an object of that collection that is bound to them, and list none.
 */
export const NODE_COMPANION_ANNOTATION = 'selfsame.io/node-companion';

export const userOfNode = (name: string) => `${NODE_USER_PREFIX}${name}`;

/** Returns the name of the node, or undefined if the user is not a node. */
export function nodeOfUser(user: string): string | undefined {
  return user.startsWith(NODE_USER_PREFIX) ? user.slice(NODE_USER_PREFIX.length) || undefined : undefined;
}
