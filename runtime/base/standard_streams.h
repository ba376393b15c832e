// What main does first, of every program here.
#ifndef FUSIOND_RUNTIME_BASE_STANDARD_STREAMS_H_
#define FUSIOND_RUNTIME_BASE_STANDARD_STREAMS_H_

namespace fusiond::base {

// Whoever starts us with descriptor 0, 1 or 2 closed gets one in its place that fails as a closed
// one does; without it the next socket or file that is opened has that number, and with it what is
// printed. A library may have opened one before main: then this program is executed once more, with
// `argv`.
void HoldStandardStreams(char** argv);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_STANDARD_STREAMS_H_
