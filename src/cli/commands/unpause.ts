/** virtctl unpause */
import { definePauseCommand } from '#cli/verbs/pause-command.ts';

export const unpause = definePauseCommand({ verb: 'unpause', word: 'unpause', gerund: 'unpausing' }, 'Unpause');
