export type { KeyStorage } from '../client/keys.js'
export { useKeyFile } from './key-file.js'
