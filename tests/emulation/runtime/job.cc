#include "tests/emulation/runtime/job.h"

#include <cstring>

namespace fusiond::emulation {
namespace {

// Visit(archive, value) names each field once; a Writer and a Reader walk the same list.
struct Writer {
  std::string out;
  void operator()(uint64_t& v) { out.append(reinterpret_cast<const char*>(&v), sizeof(v)); }
  void operator()(std::string& s) {
    uint64_t size = s.size();
    (*this)(size);
    out += s;
  }
  uint64_t Size(uint64_t size) {
    (*this)(size);
    return size;
  }
};

struct Reader {
  const std::string& in;
  size_t at = 0;
  bool ok = true;

  void operator()(uint64_t& v) {
    v = 0;
    if (!Has(sizeof(v))) return;
    memcpy(&v, in.data() + at, sizeof(v));
    at += sizeof(v);
  }
  void operator()(std::string& s) {
    const uint64_t size = Size(0);
    s.assign(in, at, size);
    at += size;
  }
  // A count of things of at least one byte each.
  uint64_t Size(uint64_t) {
    uint64_t size = 0;
    (*this)(size);
    return Has(size) ? size : 0;
  }
  bool Has(uint64_t bytes) { return ok = ok && bytes <= in.size() - at; }
};

template <class Archive, class T>
void VisitAs64(Archive& a, T& v) {
  uint64_t wide = static_cast<uint64_t>(v);
  a(wide);
  v = static_cast<T>(wide);
}
template <class Archive>
void Visit(Archive& a, std::string& v) {
  a(v);
}
template <class Archive, class T>
void Visit(Archive& a, std::vector<T>& v) {
  v.resize(a.Size(v.size()));
  for (T& each : v) Visit(a, each);
}
template <class Archive>
void Visit(Archive& a, Argument& v) {
  VisitAs64(a, v.tensor), a(v.offset), a(v.value);
}
template <class Archive>
void Visit(Archive& a, Launch& v) {
  a(v.library), a(v.entry), a(v.grid_x), a(v.grid_y), a(v.threads), a(v.cluster), a(v.smem_bytes);
  VisitAs64(a, v.dependent), Visit(a, v.arguments);
}
template <class Archive>
void Visit(Archive& a, Tensor& v) {
  a(v.bytes), a(v.alignment);
}
template <class Archive>
void Visit(Archive& a, Interleaving& v) {
  VisitAs64(a, v.order), VisitAs64(a, v.late_copies), a(v.seed);
}
template <class Archive>
void Visit(Archive& a, Job& v) {
  Visit(a, v.tensors), Visit(a, v.chain), Visit(a, v.interleavings);
  a(v.resident_ctas), a(v.seconds);
}
template <class Archive>
void Visit(Archive& a, Outcome& v) {
  a(v.fault), a(v.interleavings_run), Visit(a, v.tensors);
}

template <class T>
std::string EncodeAny(T value) {
  Writer writer;
  Visit(writer, value);
  return writer.out;
}
template <class T>
bool DecodeAny(const std::string& bytes, T* value) {
  Reader reader{bytes};
  Visit(reader, *value);
  return reader.ok && reader.at == bytes.size();
}

}  // namespace

std::string Encode(const Job& job) { return EncodeAny(job); }
std::string Encode(const Outcome& outcome) { return EncodeAny(outcome); }
bool Decode(const std::string& bytes, Job* job) { return DecodeAny(bytes, job); }
bool Decode(const std::string& bytes, Outcome* outcome) { return DecodeAny(bytes, outcome); }

}  // namespace fusiond::emulation
