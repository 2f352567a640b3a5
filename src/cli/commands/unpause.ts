/** virtctl unpause */
import { definePauseCommand } from '#cli/pause-command.ts';

export const unpause = definePauseCommand({ verb: 'unpause', word: 'unpause', gerund: 'unpausing' }, 'Unpause');
