export { forget } from './forget.js'
export { enter, look, withhold } from './looked.js'
export * from './machine.js'
