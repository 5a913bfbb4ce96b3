export { forget } from './forget.js'
export { enter, look, withhold } from './looked.js'
export {
  begin,
  complete,
  inspect,
  peek,
  recordStep,
  release,
  renew,
  resolve,
  type Step,
  type StoredRecord,
} from './machine.js'
