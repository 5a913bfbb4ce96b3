export { type OpenedStore, type StoreLawsOptions, storeLaws } from './store-laws.js'
